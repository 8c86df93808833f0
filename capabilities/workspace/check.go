package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stilehost/stile/internal/sqlite"
)

// promises counts, for each promise of the schema, the places that break it.
var promises = map[string]string{
	"a damaged database": `SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'`,
	"a broken reference": `SELECT count(*) FROM pragma_foreign_key_check`,
	"wrong usage": `SELECT count(*) FROM usage u WHERE files <> (SELECT count(*) FROM node n WHERE n.workspace = u.workspace)
		OR bytes <> (SELECT coalesce(sum(size), 0) FROM node n WHERE n.workspace = u.workspace)
		OR revisions <> (SELECT count(*) FROM revision r WHERE r.workspace = u.workspace)
		OR history <> (SELECT coalesce(sum(size), 0) FROM revision r WHERE r.workspace = u.workspace)
		OR paths <> (SELECT coalesce(sum(room), 0) FROM node n WHERE n.workspace = u.workspace) + (SELECT coalesce(sum(room), 0) FROM revision r WHERE r.workspace = u.workspace)
		OR planned <> 0 OR room <> 512 + bytes + history + paths + (SELECT coalesce(sum(bytes + paths), 0) FROM snapshot s WHERE s.workspace = u.workspace)`,
	"a wrong sum of an owner": `SELECT count(*) FROM owned FULL JOIN (SELECT rtrim(workspace, replace(workspace, '.', '')) AS owner, sum(room) AS bytes FROM usage GROUP BY 1) u USING (owner)
		WHERE owned.bytes IS NOT u.bytes`,
	"a size other than the content's": `SELECT count(*) FROM
		(SELECT content, size FROM node WHERE kind = 0 UNION ALL SELECT content, size FROM revision UNION ALL SELECT content, size FROM kept WHERE kind = 0) f
		LEFT JOIN content c ON c.id = f.content WHERE c.size IS NOT f.size`,
	"a content of another size": `SELECT count(*) FROM content c WHERE CASE WHEN size <= 65536 THEN length(bytes) IS NOT size
		ELSE bytes IS NOT NULL OR size <> (SELECT coalesce(sum(length(piece.bytes)), 0) FROM part JOIN piece ON piece.id = piece WHERE content = c.id)
			+ coalesce((SELECT pieces * 65536 FROM prefix WHERE content = c.id), 0) END
		AND id NOT IN (SELECT content FROM garbage)`,
	"a hole or a short piece": `SELECT count(*) FROM part JOIN content c ON c.id = content JOIN piece ON piece.id = piece
		WHERE length(piece.bytes) <> min(65536, c.size - n * 65536)`,
	"a base without the pieces that were shared": `SELECT count(*) FROM prefix p WHERE pieces * 65536 > (SELECT size FROM content WHERE id = base)
		OR pieces <= coalesce((SELECT b.pieces FROM prefix b WHERE b.content = p.base), 0) OR EXISTS (SELECT 1 FROM part WHERE content = p.content AND n < p.pieces)`,
	"content that nothing has": `SELECT (SELECT count(*) FROM content WHERE id NOT IN (SELECT content FROM node WHERE kind = 0)
		AND id NOT IN (SELECT content FROM revision) AND id NOT IN (SELECT content FROM kept WHERE kind = 0) AND id NOT IN (SELECT content FROM garbage) AND id NOT IN (SELECT base FROM prefix))
		+ (SELECT count(*) FROM piece WHERE id NOT IN (SELECT piece FROM part))`,
	"a lost parent": `WITH directory AS MATERIALIZED (SELECT workspace, parent || '/' || name AS path FROM node WHERE kind = 1)
		SELECT count(*) FROM node WHERE parent <> '' AND (workspace, parent) NOT IN (SELECT workspace, path FROM directory)`,
	"garbage that something has": `SELECT count(*) FROM garbage WHERE content IN (SELECT content FROM node WHERE kind = 0)
		OR content IN (SELECT content FROM revision) OR content IN (SELECT content FROM kept WHERE kind = 0) OR content IN (SELECT base FROM prefix)`,
	"content where none belongs": `SELECT count(*) FROM node WHERE kind <> 0 AND (size <> 0 OR content IS NOT NULL)`,
}

// Check reads the whole store and reports what is wrong in it. It first finishes the tasks that operations left.
func (s *Store) Check(ctx context.Context) error {
	if err := s.finish(ctx); err != nil {
		return err
	}
	var problems []error
	err := s.db.View(ctx, func(c *sqlite.Conn) error {
		for _, promise := range slices.Sorted(maps.Keys(promises)) {
			var n int
			if err := c.Row(ctx, promises[promise]).Scan(&n); err != nil {
				return err
			}
			if n != 0 {
				problems = append(problems, fmt.Errorf("%s: %d times", promise, n))
			}
		}
		return nil
	})
	return errors.Join(err, errors.Join(problems...))
}
