-- A small library: books, copies, readers and loans.
CREATE TABLE IF NOT EXISTS library.books (
  isbn CHAR(13) PRIMARY KEY,
  title VARCHAR(200) NOT NULL,
  price NUMERIC(8, 2) DEFAULT 0 CHECK (price >= 0 AND price < 1000),
  added TIMESTAMP DEFAULT current_timestamp
);
create temporary table copies (
  id bigint not null constraint copies_key unique,
  isbn char(13) references library.books (isbn) on delete cascade on update no action,
  shelf double precision default (1 + .5),
  damaged boolean default false,
  constraint one_place unique (isbn, shelf),
  foreign key (isbn, shelf) references shelves on update set default on delete restrict,
  check (damaged is not true or shelf is null), primary key (id)
);
Create Unique Index if not exists by_title On library.books (title ASC, lower(isbn) DESC NULLS LAST);
create index old on copies (added nulls first);
CREATE TABLE kinds (a int, b smallint, c character varying (40), d date default current_date, e time, f real,
  g text, h blob);
