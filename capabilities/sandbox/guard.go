package sandbox

import (
	"maps"
	"path"
	"strings"

	"github.com/stilehost/stile/capabilities/internal/trees"
)

// Programs act on some files by their names: git runs hooks and what its configuration names, and servers run what the files of a CI
// say. From a sandbox, such files go to a directory of the machine only if the grant names them.

// ciFiles are files and folders at the top that CI servers read.
var ciFiles = []string{
	".github/workflows", ".github/actions", ".gitlab-ci.yml", ".gitlab-ci.yaml", ".ci", ".circleci", ".travis.yml", ".drone.yml", ".woodpecker",
	".woodpecker.yml", ".buildkite", ".gitea/workflows", ".forgejo/workflows", "jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml",
}

// guard refuses such files.
type guard struct {
	active  bool
	allowed []string
	// repositories are folders that git would take for its own, by their content, whatever their names.
	repositories map[string]bool
}

func newGuard(c *copier, changed []string) *guard {
	g := &guard{active: c.outside.OnDisk(), allowed: c.allowed, repositories: map[string]bool{}}
	if !g.active {
		return g
	}
	maps.Copy(g.repositories, c.repositories)
	gone := map[string]bool{}
	for _, p := range changed {
		gone[p] = find(c.in, p) == nil
	}
	for p, s := range c.history.states {
		if s.inside != nil && !gone[p] { // it is there, whether it was looked at or not
			noteRepository(g.repositories, p)
		}
	}
	for p := range c.out {
		noteRepository(g.repositories, p)
	}
	return g
}

// noteRepository adds the folder of a path if git would take it for its own.
func noteRepository(repositories map[string]bool, p string) {
	if folder, name := path.Split(p); strings.EqualFold(name, "HEAD") || strings.EqualFold(name, "commondir") {
		repositories[strings.ToLower(strings.TrimSuffix(folder, "/"))] = true
	}
}

// refuses says why a path is not copied to the directory. "" means that it is.
func (g *guard) refuses(p string, in *trees.Entry) string {
	// A file or a link of git's own name names another folder of git's.
	other := in != nil && in.Kind != trees.Directory && strings.EqualFold(path.Base(p), ".git")
	if !g.active || !other && !g.guarded(p) {
		return ""
	}
	for _, a := range g.allowed {
		if p == a || strings.HasPrefix(p, a+"/") {
			return ""
		}
	}
	return "programs of this machine act on it, and no rule of the grant names it"
}

func (g *guard) guarded(p string) bool {
	lower := strings.ToLower(p) // some disks do not distinguish case
	for _, f := range ciFiles {
		if lower == f || strings.HasPrefix(lower, f+"/") {
			return true
		}
	}
	names := strings.Split(lower, "/")
	for i, name := range names {
		folder := strings.Join(names[:i], "/")
		inGit := i > 0 && (names[i-1] == ".git" || g.repositories[folder])
		if inGit && (name == "hooks" || name == "config" || name == "config.worktree" || name == "commondir" || name == "gitdir") {
			return true
		}
	}
	return false
}
