package durable

import "github.com/stilehost/stile/internal/sqlite"

// SchemaAt is the schema of the file at a version.
func SchemaAt(version int) sqlite.Schema {
	s := schema
	s.Migrations = s.Migrations[:version]
	return s
}

// Versions is how many versions the schema has.
func Versions() int { return len(schema.Migrations) }

// Active is how many runs this process works on.
func (r *Runs) Active() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.active)
}
