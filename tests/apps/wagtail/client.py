"""An editor of a Wagtail site: pages, revisions, moves, redirects, collections and users, through Wagtail's and Django's own code.

Every round leaves the site as it was, so that each statement touches the same number of rows in each round.
"""

import os
import time

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.db.models import F
from taggit.models import Tag
from wagtail.contrib.redirects.models import Redirect
from wagtail.models import Collection, Page, PageLogEntry, Revision, Site

N_REDIRECTS = 20
N_KEPT = 200


class Rollback(Exception):
    pass


class Client:
    def __init__(self, watch):
        self.watch = watch
        self.name = f"writer-{os.getpid()}-{int(time.time())}"
        self.n = 0

    def prepare(self):
        """A section of the site of its own, and pages that stay and are read back in every round."""
        self.user = get_user_model().objects.create_superuser(self.name, password="of-a-test")
        root = Page.objects.get(depth=1)
        self.section = root.add_child(instance=Page(title=self.name, slug=self.name))
        for side in ("left", "right"):
            self.section.add_child(instance=Page(title=side, slug=side))
        self.site = Site.objects.get(is_default_site=True)
        Redirect.objects.bulk_create(
            Redirect(old_path=f"/{self.name}/kept/{i}", site=self.site, redirect_link="/kept/") for i in range(N_KEPT)
        )

    def repair(self):
        """After an error: as a request handler that begins anew."""
        if not connection.is_usable():
            connection.close()
        try:
            for page in self.fresh().get_descendants().filter(title__startswith="page "):
                page.delete()
            self.mine().exclude(old_path__contains="/kept/").delete()
            Tag.objects.filter(slug__startswith=self.name).delete()
        except Exception as error:
            self.watch.failed(error)

    def steps(self):
        self.n += 1
        return [
            self.publish, self.edit, self.move, self.unpublish_and_delete, self.many_redirects, self.conflicts,
            self.counters, self.rolled_back, self.people, self.collections, self.read_back,
        ]

    def fresh(self, side=None):
        path = self.section.url_path + (f"{side}/" if side else "")
        return Page.objects.get(url_path=path)

    def mine(self):
        return Redirect.objects.filter(old_path__startswith=f"/{self.name}/")

    # ---- the steps ----

    def publish(self):
        with transaction.atomic():
            self.page = self.fresh("left").add_child(instance=Page(title="page 0", slug="page-0", live=False))
            for i in range(2):
                self.page.add_child(instance=Page(title=f"page 0.{i}", slug=f"page-0-{i}"))
            self.page.save_revision(user=self.user, log_action=True).publish(user=self.user)
        self.watch.expect("a page was published", Page.objects.get(pk=self.page.pk).live, True)

    def edit(self):
        page = Page.objects.get(pk=self.page.pk)
        page.title = "page 0, edited"
        page.seo_title = f"round {self.n}"
        page.save_revision(user=self.user, changed=True).publish(user=self.user)
        again = Page.objects.get(pk=page.pk)
        self.watch.expect("title read back", (again.title, again.seo_title), ("page 0, edited", f"round {self.n}"))
        self.watch.expect("revisions", Revision.objects.for_instance(again).count(), 2)
        n_rows = Page.objects.filter(pk=page.pk).update(search_description="by one statement")
        self.watch.expect("update", n_rows, 1)

    def move(self):
        Page.objects.get(pk=self.page.pk).move(self.fresh("right"), pos="last-child")
        self.watch.expect("children of left", Page.objects.child_of(self.fresh("left")).count(), 0)
        self.watch.expect("pages below right", Page.objects.descendant_of(self.fresh("right")).count(), 3)
        self.page = Page.objects.get(pk=self.page.pk)

    def unpublish_and_delete(self):
        page = Page.objects.get(pk=self.page.pk)
        page.unpublish(user=self.user)
        entries = PageLogEntry.objects.filter(page=page.pk)
        self.watch.expect("unpublished", Page.objects.get(pk=page.pk).live, False)
        n_entries = entries.count()
        Page.objects.get(pk=page.pk).delete(user=self.user)
        self.watch.expect("pages of the round", Page.objects.descendant_of(self.fresh()).count(), 2)
        # the log outlives the page: it is emptied here so that it does not grow
        n_deleted, _ = PageLogEntry.objects.filter(user=self.user).delete()
        self.watch.expect("entries of the log", n_entries < n_deleted, True)

    def many_redirects(self):
        made = Redirect.objects.bulk_create(
            Redirect(old_path=f"/{self.name}/{i}", site=self.site, redirect_link=f"/to/{i}") for i in range(N_REDIRECTS)
        )
        self.watch.expect("keys returned", len({redirect.pk for redirect in made} - {None}), N_REDIRECTS)
        for redirect in made:
            redirect.redirect_link += "/changed"
        self.watch.expect("bulk_update", Redirect.objects.bulk_update(made, ["redirect_link"]), N_REDIRECTS)
        changed = self.mine().filter(redirect_link__endswith="/changed")
        self.watch.expect("update", changed.update(is_permanent=False), N_REDIRECTS)
        read = [redirect.pk for redirect in changed.iterator(chunk_size=7)]
        self.watch.expect("read by a cursor", sorted(read), sorted(redirect.pk for redirect in made))
        n_deleted, by_model = changed.delete()
        self.watch.expect("delete", (n_deleted, by_model), (N_REDIRECTS, {"wagtailredirects.Redirect": N_REDIRECTS}))

    def conflicts(self):
        """INSERT ... ON CONFLICT in both forms, and the two steps of get_or_create."""
        tags = [Tag(name=f"{self.name} {i}", slug=f"{self.name}-{i}") for i in range(5)]
        Tag.objects.bulk_create(tags[:3])
        Tag.objects.bulk_create(tags, ignore_conflicts=True)
        Tag.objects.bulk_create(tags, update_conflicts=True, unique_fields=["slug"], update_fields=["name"])
        own = Tag.objects.filter(slug__startswith=self.name)
        self.watch.expect("tags", own.count(), 5)
        _, created = Tag.objects.get_or_create(slug=f"{self.name}-0", defaults={"name": "other"})
        self.watch.expect("created a tag that was there", created, False)
        _, created = Tag.objects.update_or_create(slug=f"{self.name}-5", defaults={"name": f"{self.name} 5"})
        self.watch.expect("created a tag that was not there", created, True)
        self.watch.expect("deleted tags", own.delete()[0], 6)

    def counters(self):
        """A transaction that locks, reads and adds."""
        with transaction.atomic():
            locked = list(self.mine().select_for_update().order_by("pk")[:10])
            self.watch.expect("locked", len(locked), 10)
            keys = [redirect.pk for redirect in locked]
            n_rows = Redirect.objects.filter(pk__in=keys).update(redirect_link=F("old_path"))
            self.watch.expect("update of locked rows", n_rows, 10)
            n_rows = Redirect.objects.filter(pk__in=keys).update(redirect_link="/kept/")
            self.watch.expect("second update of locked rows", n_rows, 10)

    def rolled_back(self):
        try:
            with transaction.atomic():
                self.watch.expect("update", self.mine().update(redirect_link="/lost/"), N_KEPT)
                try:
                    with transaction.atomic():
                        self.watch.expect("delete", self.mine().delete()[0], N_KEPT)
                        raise Rollback
                except Rollback:
                    self.watch.expect("rows after the savepoint", self.mine().count(), N_KEPT)
                raise Rollback
        except Rollback:
            kept = self.mine().filter(redirect_link="/kept/").count()
            self.watch.expect("rows after the rollback", kept, N_KEPT)

    def people(self):
        with transaction.atomic():
            user = get_user_model().objects.create_user(f"{self.name}-guest", email="guest@example.com")
            user.groups.set(Group.objects.filter(name__in=["Editors", "Moderators"]))
        self.watch.expect("groups", user.groups.count(), 2)
        user.first_name = "Guest"
        user.save(force_update=True)
        found = get_user_model().objects.filter(groups__name="Editors", first_name="Guest", username=user.username)
        self.watch.expect("found by a join", [found.pk for found in found], [user.pk])
        self.watch.expect("delete with what belongs to it", user.delete()[1].get("auth.User"), 1)

    def collections(self):
        root = Collection.objects.get(depth=1)
        collection = root.add_child(name=f"{self.name}")
        collection.name += ", renamed"
        collection.save()
        self.watch.expect("found by name", Collection.objects.filter(name=collection.name).count(), 1)
        Collection.objects.get(pk=collection.pk).delete()
        self.watch.expect("collections left", Collection.objects.filter(name=collection.name).count(), 0)

    def read_back(self):
        self.watch.expect("rows kept", self.mine().count(), N_KEPT)
        self.watch.expect("children", self.fresh().numchild, 2)
        with connection.cursor() as cursor:
            cursor.execute("select count(*) from wagtailcore_page where path like %s", [self.section.path + "%"])
            self.watch.expect("pages", cursor.fetchone()[0], 3)
