package toolchain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
)

func newTill() *till { return &till{exact: true, done: map[abi.Once]int64{}} }

// fixedClock is the clock of a grant, which has no timers.
type fixedClock struct{ time time.Time }

func (c fixedClock) Now() time.Time { return c.time }

func (fixedClock) AfterFunc(time.Duration, func()) (stop func() bool) {
	return func() bool { return true }
}

// goesOn has a durable call go on in other processes after it slept, and after its journal failed after so many entries and commits, the first five times. Each process has an env of its own.
func goesOn(t *testing.T, c *host.Component, kill int, env func(process int) host.Env) (_ host.Result, slept int, killed bool) {
	t.Helper()
	d, again := host.Durable{Run: fmt.Sprint("r", kill), Idle: time.Millisecond}, kill
	for process := range 60 {
		l := &logged{kill: kill}
		run := d
		run.Journal = l
		result, err := c.Do(t.Context(), host.Request{Tool: "t", Env: env(process), Durable: &run, Limits: host.Limits{Wall: time.Minute}})
		if asleep, ok := errors.AsType[*host.AsleepError](err); ok {
			slept++
			d.State, d.Log, kill = asleep.State, nil, l.kill
			untilDue(asleep)
			continue
		}
		if !errors.Is(err, errKilled) {
			if err != nil {
				t.Fatalf("process %d: %v", process, err)
			}
			return result, slept, killed
		}
		if killed, kill = true, again; process > 5 {
			kill = 1 << 30
		}
		d.Log = append(d.Log, l.entries[:l.committed]...)
	}
	t.Fatal("it does not end")
	return host.Result{}, 0, false
}

// TestGrantsAreKept has durable calls use as much as they can of an embedder's grant, while they sleep and are killed, and get a new grant in each process. In all, they get what one grant allows.
func TestGrantsAreKept(t *testing.T) {
	t.Parallel()
	const most = 4
	_, chain := newToolchain(t, host.Options{})
	c := build(t, chain, tool("", `
		let used = 0;
		for (let i = 0; i < 8; i++) {
			try { await env.it.increment("n", 1); used++; } catch (e: any) { if (!["exhausted", "interrupted"].includes(e.code)) throw e; }
			if (i % 3 == 2) { await env.clock.sleep(10); await env.clock.sleep(10); }
		}
		return used;`))
	// Each gives a grant for a process, of a bucket.
	shared := host.NewGrant(newTill(), host.GrantOptions{Operations: most})
	for name, grant := range map[string]func(abi.Capability) abi.Capability{
		"operations": func(b abi.Capability) abi.Capability { return host.NewGrant(b, host.GrantOptions{Operations: most}) },
		"operations within a grant": func(b abi.Capability) abi.Capability {
			return host.NewGrant(host.NewGrant(b, host.GrantOptions{Operations: most}), host.GrantOptions{Operations: 100})
		},
		"a lower limit at last": nil,
		"the same grant":        func(abi.Capability) abi.Capability { return shared },
	} {
		t.Run(name, func(t *testing.T) {
			for kill := 0; ; kill++ {
				bucket := newTill()
				env := func(process int) host.Env {
					switch {
					case grant != nil:
						return host.Env{"it": grant(bucket), "clock": clock.System()}
					case process == 0:
						return host.Env{"it": host.NewGrant(bucket, host.GrantOptions{Operations: most + 1}), "clock": clock.System()}
					default:
						return host.Env{"it": host.NewGrant(bucket, host.GrantOptions{Operations: most}), "clock": clock.System()}
					}
				}
				if name == "the same grant" {
					kill = 1 << 20
				}
				r, slept, killed := goesOn(t, c, kill, env)
				var used int
				if err := json.Unmarshal(r.Output, &used); err != nil {
					t.Fatal(err)
				}
				if !killed && (used != most || slept == 0) || used > most+1 || used > most && name != "a lower limit at last" || bucket.value > most+1 {
					t.Errorf("killed at %d, and asleep %d times: it used %d, and the bucket has %d", kill, slept, used, bucket.value)
				}
				if !killed {
					break
				}
			}
		})
	}
	if n := shared.Usage().Operations; n != most {
		t.Errorf("%d operations of the same grant are counted", n)
	}
}

// TestGrantsEndOnce has a durable call get a grant that ends later each time. It ends when the first did.
func TestGrantsEndOnce(t *testing.T) {
	t.Parallel()
	_, chain := newToolchain(t, host.Options{})
	c := build(t, chain, tool("", `
		await env.it.get("n");
		const said = [];
		for (let i = 0; i < 3; i++) {
			await env.clock.sleep(100);
			try { await env.it.get("n"); said.push("well"); } catch (e: any) { said.push(e.code); }
		}
		return said.join();`))
	begin := time.Now()
	for kill := range 12 {
		r, _, _ := goesOn(t, c, kill, func(process int) host.Env {
			now := begin.Add(time.Duration(process) * 40 * time.Minute)
			return host.Env{"it": host.NewGrant(newTill(), host.GrantOptions{Expires: now.Add(time.Hour), Clock: fixedClock{now}}), "clock": clock.System()}
		})
		if got := string(r.Output); !strings.HasSuffix(got, `,expired"`) {
			t.Errorf("killed at %d: got %s", kill, got)
		}
	}
}

// openWorkspaces opens a store of workspaces that ends with the test.
func openWorkspaces(t *testing.T) *workspace.Store {
	t.Helper()
	store, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "w.db"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// TestGrantsAreSpentOnce kills a durable call again and again after it has derived handles, which are made again each time. A grant that is just enough for all of it stays so.
func TestGrantsAreSpentOnce(t *testing.T) {
	t.Parallel()
	store := openWorkspaces(t)
	_, chain := newToolchain(t, host.Options{})
	c := build(t, chain, tool("", `
		await env.files.makeDirectory("a");
		for (let i = 0; i < 5; i++) await env.files.subdirectory("a").makeDirectory("b" + i);
		await env.clock.sleep(10);
		return "done";`))
	for kill := 0; ; kill++ {
		files := store.Workspace(fmt.Sprint(kill))
		r, _, killed := goesOn(t, c, kill, func(int) host.Env {
			return host.Env{"files": host.NewGrant(files, host.GrantOptions{Operations: 11}), "clock": clock.System()}
		})
		if string(r.Output) != `"done"` {
			t.Errorf("killed at %d: got %s", kill, r.Output)
		}
		if !killed {
			break
		}
	}
}

// TestGrantsOfTwoNames kills a durable call again and again that derives handles through a grant with two names. What it made again does not give it back what it has used.
func TestGrantsOfTwoNames(t *testing.T) {
	t.Parallel()
	store := openWorkspaces(t)
	_, chain := newToolchain(t, host.Options{})
	c := build(t, chain, tool("", `
		await env.files.makeDirectory("a");
		let made = 0;
		for (let i = 0; i < 12; i++) {
			try {
				await env.files.subdirectory("a").makeDirectory("b" + i);
				made++;
			} catch (e: any) {
				if (e.code !== "exhausted") throw e;
			}
		}
		await env.clock.sleep(10);
		return made;`))
	for kill := 0; ; kill++ {
		files := store.Workspace(fmt.Sprint(kill))
		r, _, killed := goesOn(t, c, kill, func(int) host.Env {
			g := host.NewGrant(files, host.GrantOptions{Operations: 11})
			return host.Env{"files": g, "more": g, "clock": clock.System()}
		})
		if string(r.Output) != "5" {
			t.Errorf("killed at %d: made %s directories", kill, r.Output)
		}
		if !killed {
			break
		}
	}
}

// TestCutOffIsCharged kills a durable call at every operation that it makes, of a workspace that remembers it and of a folder that does not. Those that the process's end cut off count too.
func TestCutOffIsCharged(t *testing.T) {
	t.Parallel()
	_, chain := newToolchain(t, host.Options{})
	c := build(t, chain, tool("", `
		for (let i = 0; i < 12; i++) {
			try {
				await env.files.append("log", "0123456789".repeat(100));
			} catch (e: any) {
				if (e.code !== "exhausted" && e.code !== "interrupted") throw e;
			}
			if (i % 4 === 3) await env.clock.sleep(10);
		}
		return (await env.all.read("log")).length / 1000;`))
	for _, options := range []host.GrantOptions{{Operations: 5}, {Bytes: 5500}} {
		store, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "w.db"), workspace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		disk, err := workspace.OpenDisk(t.TempDir(), workspace.DiskOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(store.Close(), disk.Close()); err != nil {
				t.Error(err)
			}
		})
		for _, kind := range []string{"workspace", "folder"} {
			for kill := 0; ; kill++ {
				files := store.Workspace(fmt.Sprint(kill))
				if kind == "folder" {
					if files, err = disk.Directory().Sub(fmt.Sprint(kill)); err != nil {
						t.Fatal(err)
					}
				}
				r, _, killed := goesOn(t, c, kill, func(int) host.Env {
					return host.Env{"files": host.NewGrant(files, options), "all": files, "clock": clock.System()}
				})
				var lines int
				if err := json.Unmarshal(r.Output, &lines); err != nil {
					t.Fatal(err)
				}
				if lines > 5 || !killed && lines != 5 {
					t.Errorf("a %s with %+v, killed at %d: it has %d lines", kind, options, kill, lines)
				}
				if !killed {
					break
				}
			}
		}
	}
}
