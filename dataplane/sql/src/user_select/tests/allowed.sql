select 1
select id, Name as "N" from app.orders o where o.id = @id and price >=@p order by 1 limit 10
select count(*), sum(x) filter (where y > 1), string_agg(a, ',' order by b desc) from t group by a having count(*) > 1
with a as (select 1 as x union all values (2)) select * from a join t using (x) left join u on a.x = u.y
select case when a then 1 else 2 end, a::text, cast(b as numeric(10,2)), date '2020-01-01', interval '1 day', extract(epoch from ts) from t
select substring(a from 1 for 2), substring(a, 1, 2), trim(both 'x' from a), position('a' in b), overlay(a placing 'b' from 1), ceil(a), floor(b) from t
select g from generate_series(1, 10) as g
select * from unnest(array[1,2]) with ordinality as u(v, n)
select * from t, lateral jsonb_array_elements(t.x) e
select x.* from json_to_recordset('[]'::json) as x(a int, b text)
select row_number() over (partition by a order by b rows between unbounded preceding and current row) from t
select rank() over w from t window w as (order by a)
select a from t where a in (1,2) and b not in (select 1) and c between 1 and 2 and d like 'x%' escape '\' and exists (select 1) and e is distinct from 2
select -(-1), not not true, 'it''s', E'a\nb', '''''', 'a\b'
select current_date, now(), current_timestamp(3), coalesce(a, b), nullif(1, 2), greatest(1, 2) from t
select a[1], a[1:2], j -> 'a' ->> 'b', j @> '{}', j #> '{a}', j ? 'a', a || b from t
select * from information_schema.tables
select ts at time zone 'UTC', a collate "C" from t
select @x, @X, @y
select array(select 1), array[[1,2],[3,4]]
select a from t group by grouping sets ((a), ()), rollup (b), cube (c)
select distinct on (a) a, b from t fetch first 5 rows with ties
select jsonb_build_object('a', 1), make_interval(days => 1)
select percentile_cont(0.5) within group (order by a) from t
select '2020-01-01'::timestamp with time zone, 'x'::varchar(10), 1::double precision, '{}'::int[], 'a'::inet
select g.g, u.n from generate_series(1, 3) as g, unnest(array['a', 'b']) with ordinality as u(v, n)
select a from t where a = any(array[1, 2]) and b > all(select 1)
select /* a comment */ a -- and another
select t.* from app.t as t where t.a ilike '%x%' or t.b ~ '^a' and not t.c
select sum(a) over (order by b) from t
select json_build_object('a', a)::text from t
select a from t except select b from u intersect select c from v
select a from t offset 5 limit 10
select "Größe", 'ü', E'\'' from "Tabelle"
select x.a from (select 1 as a) as x cross join lateral (select x.a + 1 as b) as y
select 1e10, .5, 0x1F, 1_000, -1, +1, ~1, 2 ^ 3, 5 % 2
select a is true, a is not null, a is unknown, a not between 1 and 2, a not like 'b', a similar to 'b' from t
select replace(a, b, 'x'), strpos(a, b), position(b in a), trim(both b from a), translate(a, b, c), split_part(a, b, 2), string_to_array(a, b) from t where a like b || '%' escape '!' or a ilike b
select a - b, a - (b + 1), a - lag(b) over (order by c), max(a) - min(b), a - coalesce(b, 0), a - (select max(b) from u), a - @x, a - case when b then 1 else 2 end from t group by a - b
select a && b, a @> b, a <@ b, j ?| b, j ?& b, a && @x, a @> array['x', @y], a && '{x}' from t
