//! Which statements tell of a row by raising for it.

use crate::user_select::{ColumnType, Rules, check};

/// Of tables whose columns `id` and `n` are integers, `word` is text, `at` a timestamp, `num` numeric, `float` a float, `doc` json, and `rate` what a view works out.
/// Only `odd` has a column `to_json`.
fn may_raise(text: &str) -> bool {
    let types = [
        ("id", 23),
        ("n", 20),
        ("word", 25),
        ("at", 1184),
        ("num", 1700),
        ("float", 701),
        ("doc", 114),
        ("rate", 23),
        ("to_json", 23),
    ]
    .map(|(name, base_oid)| (name, ColumnType { base_oid, is_enum: false, is_worked_out: name == "rate" }));
    let select = check(text, Rules::SqlEndpoint).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    select.may_raise(|of, name| {
        let has = |known: &str| {
            known == name && (known != "to_json" || of.is_none_or(|relation| relation.name == "odd"))
        };
        types.iter().filter(|(known, _)| has(known)).map(|(_, ty)| *ty).collect()
    })
}

#[test]
fn comparisons_of_columns_raise_for_no_row() {
    for text in [
        "select rate, id / n from v where n = 1 and (word <> 'x' or not id in (1, 2))",
        "select id from v where num between @a and @b and word = @c and id = any(@d)",
        "select id from v where at > now() - interval '7 days' and at < '2026-01-01'::date and word is not null",
        "select v.id, o.n from o join v on v.id = o.id and v.n < o.num left join u using (id) where o.id > -5",
        "select round(sum(num)), word from v where n = 1 group by v.word having sum(num) > 5 and count(*) < @n",
        "select word as w, sum(n) as s from v group by word order by w, sum(num) desc nulls last limit @n",
        "select id from v where (n, id) > (@n, @id) order by n, 1 limit 5 offset 3",
        "select distinct id, word from v order by word",
        "select distinct on (v.word) doc, 1 / n from v order by v.word, v.n",
        "select * from v where id = 1 order by n",
        "select doc -> 'a' from v where at = @at::timestamptz",
        "select max(n), min(1 / n), max(v.word) from v where word <> 'x'",
        "select v.id from v join odd o on o.id = v.id where o.to_json is null",
    ] {
        assert!(!may_raise(text), "{text}");
    }
}

/// Each was seen to tell of a hidden row, or is next to one that was.
#[test]
fn all_else_may_raise() {
    for text in [
        "select id from v where 1 / n = 1",
        "select id from v where rate = 1",
        "select id from v where rate is null",
        "select v.rate from v group by v.rate",
        "select id from v order by v.rate",
        "select v.id from v join o on o.id = v.rate",
        "select v.rate from o left join v on v.id = o.id",
        "select * from o left join v on v.id = o.id",
        "select count(v) as n from o left join v on v.id = o.id",
        "select id from v where word::int = 1",
        "select max(rate) from v where word <> 'x'",
        "select id from v group by id having 2 * min(v.rate) > 5",
        "select max(v) from v",
        "select v.id from v join odd on odd.id = v.id where v.to_json is null",
        "select v.to_json from o left join v on v.id = o.id left join odd on odd.id = o.id",
        "select x.id from (v join odd on odd.id = v.id) as x where x.id = 1",
        "select id from v where -n = 1",
        "select id from v where word like 'x%'",
        "select id from v where lower(word) = 'x'",
        "select id from v where n = (select n from o)",
        "select id from v where n in (select n from o)",
        "select id from v where exists (select 1 from o where 1 / v.n = o.id)",
        "select id from v where exists (select 1 from o limit 1 / (3 - v.n))",
        "select id from v where exists (select 1 from o having count(o.id) filter (where 1 / v.n = 1) > 0)",
        "select v.id from v join o on v.id = length(o.word)",
        "select v.id from v natural join o",
        "select id from v group by id having round(num) = 1",
        "select id from (select id, 1 / n as a from v) x where a = 1",
        "with x as (select 1 / n as n from v) select n from x where n = 1",
        "select v.id from v, generate_series(1, v.n) g",
        "select x.id from v as x (n, id) where x.id = 1",
        "select 1 / n as a from v union select 2",
        "select distinct 1 / n from v",
        "select distinct * from v",
        "select distinct doc from v",
        "select distinct on (1) 1 / n from v",
        "select distinct on (1) * from v",
        "select distinct on (n) 1 / n as n from v",
        "select 1 / n as a from v order by a",
        "select 1 / n from v order by 1",
        "select *, 1 / n from v order by 6",
        "select * from v order by 1",
        "select case when word = 'x' then 1 / n else n end from v order by n",
        "select 1 / n as k from v group by k",
        "select 1 / n as k from v group by (k)",
        "select 1 / n as k from v order by ((k))",
        "select 1 / n as k from v order by (1)",
        "select distinct on ((1)) 1 / n as k from v",
        "select 1 / n from v group by 1",
        "select 1 / n from v group by n",
        "select id from v order by 1 / n",
        "select id from v group by id, 1 / n",
        "select string_agg(word, ',' order by 1 / n) from v",
        "select count(distinct 1 / n) from v",
        "select row_number() over (order by 1 / n) from v",
        "select row_number() over w from v window w as (order by 1 / n)",
        "select id from v limit 1 / @n",
        // what is worked out for each row though no column stands in it
        "select id from v where word <> 'x' or now()::text::int = 1",
        "select id from v where word <> 'x' or 'a'::text::timestamp is null",
        "select id from v where word <> 'x' or (current_date + 2147483647) is null",
        "select id from v where at < now() - interval '9999 years'",
        "select id from v where word = @p::text and at = @p::timestamptz",
        // a number beyond a float's range beside a float
        "select id from v where num < '1'::float8",
        "select id from v where num < float8 '1'",
        "select v.id from v join o on v.num = o.float",
        "select id from v where (case when word = 'x' then 1e400 else 1 end) < 1",
        "select id from v where num = @x and float = @x",
        "select id from v where word = 'x' and @p in (float, num)",
        "select id from v where @p between id and num",
        // collations that conflict
        "select v.id from v join o on v.word = o.word",
        "select id from v where word collate \"C\" = 'x'",
        // functions that take a row, and types that are compared by what they are made of
        "select id from v where doc = doc",
        "select id from v where word <> 'x' or ((n, id), id) = ((1, 1), 1)",
        "select id from v where (id, (n, id)) in ((1, ((1, 1))))",
        "select id from v where v = '(1)'",
        "select id from v as s where s = '(1)'",
        "select id from v where v.hash_record = 1",
        "select id from v where v.json_build_object is null",
        "select v.hash_record from v order by hash_record",
        "select id from v order by v",
    ] {
        assert!(may_raise(text), "{text}");
    }
}
