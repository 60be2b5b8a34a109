brackets 1:8	select [id] from t
syntax 2:8	select a\nfrom t [x
top 1:8	select top 5 id from t
top 1:17	select distinct top (5) id from t
hint 1:23	select a from t with (nolock)
apply 1:23	select a from t cross apply f(1)
parameter 1:8	select $1
parameter 1:8	select @@rowcount
parameter 1:10	select a <@b from t
function 1:8	select isnull(a, 1) from t
function 2:3	select\n  getdate()
function 1:8	select len(a) from t
function 1:27	select a from t where b = newid()
catalog 1:15	select a from pg_class
catalog 1:15	select a from information_schema.tables
schema 2:6	select a\nfrom dl.keys
locking 1:17	select a from t for share
into 1:15	select a into b from t
statements 1:11	select 1; select 2
statement 1:1	update t set a = 1
statement 1:1	vacuum
recursive 1:1	with recursive x as (select 1) select * from x
syntax 1:8	select 'unfinished
for 1:1	select a from t for json path
string 1:8	select U&'a'
string 1:8	select $$a$$
string 1:8	select N'a'
column 1:8	select t.pg_sleep from t
column 1:8	select a.b.c.d from t
operator 1:11	select - -a from t
operator 1:11	select ~ ~a from t
operator 1:11	select - +a from t
