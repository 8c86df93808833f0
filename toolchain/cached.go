package toolchain

import (
	"errors"
	"fmt"

	"github.com/stilehost/stile/internal/cache"
)

// HasEngine reports whether [New] would find the engine in the cache, so that it needs neither npm nor Options.Engine.
func HasEngine(o Options) (has bool, err error) {
	if o.CacheDir == "" || o.KeyDir == "" {
		return false, nil
	}
	c, err := cache.Open(o.CacheDir, o.KeyDir, o.Logger)
	if err != nil {
		return false, fmt.Errorf("open cache: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	f, has, err := c.File("engine", engineDigest)
	if has {
		err = f.Close()
	}
	return has, err
}
