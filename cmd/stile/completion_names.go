package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
	statefile "github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/secret"
)

// A person waits for the names while they type.
const (
	namesWithin = 200 * time.Millisecond
	maxNames    = 200
	// maxNamesRow bounds a row, and maxNamesFile the file of the secrets, of which only their names are read.
	maxNamesRow  = 64 << 10
	maxNamesFile = 4 << 20
)

// safeName matches the names that are offered. A shell acts on none of these characters: whatever a store holds, a name that a person completes
// is no command.
var safeName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,199}$`)

// stored finds names of one kind in STILE_HOME.
type stored struct {
	file  string
	query string // with columns for a name and what it means; ?1 is how it begins, and ?2 where names of other beginnings follow
}

// storedNames are the kinds of names that the tag complete of an argument or a flag says.
var storedNames = map[string][]stored{
	"extension": {{lifecycle.File, "SELECT DISTINCT name, '' FROM release WHERE state IN ('active', 'pending') AND name >= ?1 AND name < ?2 ORDER BY name"}},
	"request": {
		{lifecycle.File, "SELECT DISTINCT name, '' FROM release WHERE state = 'pending' AND name >= ?1 AND name < ?2 ORDER BY name"},
		{lifecycle.File, "SELECT CAST(id AS TEXT) AS number, name || ' in ' || scope || ', by ' || author FROM release WHERE state = 'pending' AND number >= ?1 AND number < ?2 ORDER BY id DESC"},
	},
	"tool": {{lifecycle.File, "SELECT DISTINCT full_name, '' FROM tool JOIN release ON release.id = tool.release WHERE state = 'active' AND full_name >= ?1 AND full_name < ?2 ORDER BY full_name"}},
	"scope": {
		{lifecycle.File, "SELECT DISTINCT scope, '' FROM release WHERE scope >= ?1 AND scope < ?2 ORDER BY scope"},
	},
	"workspace": {{workspace.File, "SELECT DISTINCT workspace, '' FROM usage WHERE workspace >= ?1 AND workspace < ?2 ORDER BY workspace"}},
	"call":      {{callsFile, "SELECT CAST(id AS TEXT) AS number, tool || ', ' || outcome || ', ' || datetime(started / 1000, 'unixepoch') || ' UTC' FROM call WHERE number >= ?1 AND number < ?2 ORDER BY id DESC"}},
	"recorded":  {{callsFile, "SELECT DISTINCT tool, '' FROM (SELECT tool FROM call ORDER BY id DESC LIMIT 10000) WHERE tool >= ?1 AND tool < ?2 ORDER BY tool"}},
}

// namesOf returns the names of a kind that begin with a word. Nothing is made, changed or waited for long, and what cannot be read has no
// names.
func namesOf(ctx context.Context, kind, word string) []completed {
	ctx, stop := context.WithTimeout(ctx, namesWithin)
	defer stop()
	found, _ := interruptible(ctx, func() (found []completed, err error) {
		where, err := readSettings()
		if err != nil {
			return nil, err
		}
		switch kind {
		case "scope":
			found = append(found, completed{string(extension.User), "you"}, completed{string(extension.Shared), "everybody who uses this machine's STILE_HOME"})
		case "secret":
			found = secretNames(where)
		}
		for _, of := range storedNames[kind] {
			some, err := of.names(ctx, filepath.Join(where.home, of.file), word)
			if err == nil {
				found = append(found, some...)
			}
		}
		return found, nil
	})
	offered := []completed{}
	for _, one := range found {
		if strings.HasPrefix(one.word, word) && safeName.MatchString(one.word) && len(offered) < maxNames &&
			!slices.ContainsFunc(offered, func(before completed) bool { return before.word == one.word }) {
			offered = append(offered, completed{one.word, printable.Short(printable.Line(one.means), 100)})
		}
	}
	return offered
}

// names reads the names. The database is only read, and neither made nor migrated.
func (s stored) names(ctx context.Context, file, word string) (found []completed, err error) {
	if err := statefile.Regular(file); err != nil {
		return nil, err
	}
	location := url.URL{Scheme: "file", Path: file, RawQuery: "mode=ro&_pragma=busy_timeout(50)&_pragma=trusted_schema(0)&_pragma=query_only(1)"}
	if _, err := os.Lstat(file + "-wal"); errors.Is(err, fs.ErrNotExist) {
		location.RawQuery += "&immutable=1" // all is in the file: no companion is made, and no lock is waited for
	}
	db, err := sql.Open("sqlite", location.String())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, maxNamesRow); err != nil {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("%s LIMIT %d", s.query, maxNames), word, word+"\U0010ffff")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one completed
		if err := rows.Scan(&one.word, &one.means); err != nil {
			return found, err
		}
		found = append(found, one)
	}
	return found, rows.Err()
}

// secretNames returns the names of secrets, which are not encrypted. It needs no key, and asks no keyring.
func secretNames(where settings) (found []completed) {
	text, err := readFile(filepath.Join(where.home, secret.File), maxNamesFile)
	if err != nil {
		return nil
	}
	var kept struct {
		Entries []struct {
			Name string `json:"name"`
		} `json:"entries"`
	}
	if json.Unmarshal(text, &kept) != nil {
		return nil
	}
	for _, e := range kept.Entries {
		found = append(found, completed{e.Name, ""})
	}
	return found
}
