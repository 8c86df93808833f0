package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Intact makes SQLite read all of a file, of any schema, and returns an error if the file is damaged. maxRow is as in [Schema].
func Intact(ctx context.Context, file string, maxRow int) (err error) {
	db, err := readOnly(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, maxRow); err != nil {
		return err
	}
	reading, stop := context.WithTimeout(ctx, busyTimeout)
	defer stop()
	if _, err := conn.ExecContext(reading, begin); err != nil {
		return fmt.Errorf("read its schema: %w", err)
	}
	var said string
	if err := conn.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return errors.New("damaged: " + said)
	}
	return nil
}

// Check returns an error if a program with this schema cannot use the file: a *[VersionError] if it is of a newer one. It does not change the file.
func (s Schema) Check(ctx context.Context, file string) (err error) {
	db, err := readOnly(file)
	if err != nil {
		return err
	}
	c := &Conn{db: db, maxRow: s.MaxRow, readOnly: true}
	defer func() { err = errors.Join(err, c.close(), db.Close()) }()
	if err := c.open(ctx); err != nil {
		return err
	}
	_, err = s.version(ctx, c)
	return err
}

func readOnly(file string) (*sql.DB, error) {
	location := url.URL{Scheme: "file", Path: file, RawQuery: "mode=ro&_pragma=busy_timeout(5000)"}
	return sql.Open("sqlite", location.String())
}
