//! Which statements tell of a row by raising for it.

use crate::catalog::{FieldType, Operators, TypeKind};
use crate::user_select::{Rules, check};

fn ty(oid: u32) -> FieldType {
    FieldType {
        oid,
        name: String::new(),
        kind: TypeKind::Base,
        base_oid: oid,
        operators: Operators::BuiltIn,
        nested: None,
    }
}

/// Of tables whose columns `id` and `n` are integers, `word` is text, `at` a timestamp, `num` numeric, `float` a float and `doc` json.
fn may_raise(text: &str) -> bool {
    let types =
        [("id", 23), ("n", 20), ("word", 25), ("at", 1184), ("num", 1700), ("float", 701), ("doc", 114)]
            .map(|(name, oid)| (name, ty(oid)));
    let select = check(text, Rules::SqlEndpoint).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    select.may_raise(|name| types.iter().filter(|(known, _)| *known == name).map(|(_, ty)| ty).collect())
}

#[test]
fn comparisons_of_columns_raise_for_no_row() {
    for text in [
        "select id / n from v where n = 1 and (word <> 'x' or not id in (1, 2))",
        "select id from v where num between @a and @b and word = @c and id = any(@d)",
        "select id from v where at > now() - interval '7 days' and at < '2026-01-01'::date and word is not null",
        "select v.id, o.n from o join v on v.id = o.id and v.n < o.num left join u using (id) where o.id > -5",
        "select round(sum(num)), word from v where n = 1 group by word having sum(num) > 5 and count(*) < @n",
        "select word as w, sum(1 / n) as s from v group by word order by w, sum(num) desc nulls last limit @n",
        "select id from v where (n, id) > (@n, @id) order by n, 1 limit @first::int",
        "select id from v where exists (select 1 from o where o.id = v.id) and n in (select n from o)",
        "select distinct id, word from v order by word",
        "select distinct on (word) doc from v order by word, n",
        "with x as (select id, doc, word from v where n = 1) select x.doc from x where x.word > 'a'",
        "select x.id, (select max(o.n) from o where o.id = x.id) as m from (select id from v) x",
        "select id, row_number() over (partition by word order by n) from v",
        "select v.id from v cross join generate_series(1, 5) as g",
        "select string_agg(word, ',' order by id) from v",
        "select doc -> 'a' from v where doc is not null",
    ] {
        assert!(!may_raise(text), "{text}");
    }
}

#[test]
fn all_else_may_raise() {
    for text in [
        "select id from v where 1 / n = 1",
        "select id from v where word::int = 1",
        "select id from v where -n = 1",
        "select id from v where word like 'x%'",
        "select id from v where lower(word) = 'x'",
        "select id from v where n = (select n from o)",
        "select id from v where n = any(select id / n from v)",
        "select id from v where n in (select id / n from v)",
        "select id from v where exists (select 1 from o where 1 / v.n = o.id)",
        "select v.id from v join o on v.id = length(o.word)",
        "select v.id from v natural join o",
        "select id from v group by id having round(num) = 1",
        "select id from (select id, 1 / n as a from v) x where a = 1",
        "select id from (select id, n / 1 as id from v) x where id = 1",
        "with x as (select 1 / n as n from v) select n from x where n = 1",
        "select v.id from v, generate_series(1, v.n) g",
        "select v.id from v, lateral (select 1 / v.n as a) x",
        "select 1 / n as a from v union select 2",
        "select distinct 1 / n from v",
        "select distinct * from v",
        "select 1 / n as a from v order by a",
        "select 1 / n from v order by 1",
        "select 1 / n from v group by 1",
        "select id from v order by 1 / n",
        "select id from v group by id, 1 / n",
        "select string_agg(word, ',' order by 1 / n) from v",
        "select count(distinct 1 / n) from v",
        "select row_number() over (order by 1 / n) from v",
        "select row_number() over w from v window w as (order by 1 / n)",
        // a number beyond a float's range beside a float
        "select id from v where num < '1'::float8",
        "select id from v where num < float8 '1'",
        "select v.id from v join o on v.num = o.float",
        "select id from v where (case when word = 'x' then 1e400 else 1 end) < 1",
        "select id from v where num = @x and float = @x",
        // collations that conflict
        "select v.id from v join o on v.word = o.word",
        "select id from v where word collate \"C\" = 'x'",
        // types that are compared by what they are made of
        "select id from v where doc = doc",
        "select id from v where v = '(1)'",
        "select id from v as s where s = '(1)'",
        "select id from v where v.hash_record = 1",
        "select v.hash_record from v order by hash_record",
        "select id from v order by v",
        "select x.count from (select count(*) from v group by n) x where x.count = 1",
    ] {
        assert!(may_raise(text), "{text}");
    }
}
