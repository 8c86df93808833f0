package workspace

import (
	"context"
	"math"
)

// Forget removes everything of a workspace: files, history and snapshots, some in each transaction. If it is interrupted, the rest
// stays. What a call writes meanwhile may stay too.
func (s *Store) Forget(ctx context.Context, workspace string) error {
	d := s.Workspace(workspace)
	for {
		page, err := d.List(ctx, "", maxEntries, nil)
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			if err := d.Remove(ctx, e.Name, true); err != nil {
				return err
			}
		}
		if page.Cursor == nil {
			break
		}
	}
	snapshots, err := d.Snapshots(ctx)
	if err != nil {
		return err
	}
	for _, one := range snapshots {
		if err := d.RemoveSnapshot(ctx, one.ID); err != nil {
			return err
		}
	}
	for freed := int64(1); freed > 0; {
		if freed, err = (&stored{s, workspace}).drain(ctx, math.MaxInt64); err != nil {
			return err
		}
	}
	return nil
}
