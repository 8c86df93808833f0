//go:build long && linux

package durable_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stilehost/stile/durable"
)

// life is what the runs of the soak do, by their kind. Each adds what the table says to the counter of its bucket.
const life = receive + `
const count = async (n: number) => { for (let i = 0; i < n; i++) await env.store.increment("n", 1); };
switch (input.kind) {
case 0: await count(5); return 0;
case 1: await count(1); await env.clock.sleep(2000); await count(1); await env.clock.sleep(5000); await count(1); return 1;
case 2: await count(1); const got = await receive(); await count(1); return got;
case 3: await count(1); throw new Error("as asked");
case 4: await count(1); await env.clock.sleep(3600000); return 4;
case 5: for (let i = 0; i < 10; i++) { await count(1); await env.clock.sleep(300); } return 5;
default: await count(1); const text = Array.from({ length: 2000 }, () => Math.random().toString(36)); await env.clock.sleep(1000); return text.length;
}`

var lifeCounts = []int{5, 3, 2, 1, 1, 10, 1}

// usage is what this process and its store take.
type usage struct{ resident, threads, files, store int64 }

func (s *stored) usage(t *testing.T) (u usage) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	field := func(name string) int64 {
		_, rest, _ := bytes.Cut(status, []byte(name+":"))
		n, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	u.resident, u.threads = field("VmRSS")<<10, field("Threads")
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	u.files = int64(len(files))
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(filepath.Join(s.dir, durable.File+suffix)); err == nil {
			u.store += info.Size()
		}
	}
	return u
}

// TestLongSoak has 10,000 runs of mixed life within 20 minutes, while another process that works on them is killed again and again. What the process takes
// is the same at the end as in the middle. STILE_TEST_SOAK=2m makes it shorter.
func TestLongSoak(t *testing.T) {
	const runs, buckets = 10_000, 50
	whole := 20 * time.Minute
	if text := os.Getenv("STILE_TEST_SOAK"); text != "" {
		var err error
		if whole, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newStored(t, func(o *durable.Options) { o.MaxEnded = 500 })
	spec := program(t, s.shop, s.cacheDir, s.keyDir, life)
	s.runs.Work()

	type later struct {
		at   time.Time
		name string
		kind int
	}
	var queue []later
	want := make([]int, buckets)
	act := func(now time.Time) {
		for len(queue) > 0 && queue[0].at.Before(now) {
			q := queue[0]
			queue = queue[1:]
			switch r, err := s.runs.Get(t.Context(), q.name); {
			case err != nil:
				t.Error(err)
			case q.kind == 2:
				send(t, s.runs, q.name, 7, "")
			case r.State != durable.Asleep: // or it could end before its effect
				q.at = now.Add(time.Second)
				queue = append(queue, q)
			default:
				if ok, err := s.runs.Cancel(t.Context(), q.name); err != nil || !ok {
					t.Error(ok, err)
				}
			}
		}
	}
	began := time.Now()
	var middle, end usage // the most in the second and the last quarter
	most := func(u *usage, now usage) {
		u.resident, u.threads, u.files, u.store = max(u.resident, now.resident), max(u.threads, now.threads), max(u.files, now.files), max(u.store, now.store)
	}
	kill, killAt, lookAt, kills := func() {}, began, began, 0
	defer func() { kill() }()
	for i := range runs {
		at := began.Add(whole / runs * time.Duration(i))
		<-time.After(time.Until(at))
		kind, bucket := i%len(lifeCounts), i%buckets
		want[bucket] += lifeCounts[kind]
		spec.Target, spec.Input = fmt.Sprint("b", bucket), fmt.Appendf(nil, `{"kind":%d}`, kind)
		info, _, err := s.runs.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		switch kind {
		case 2, 4:
			queue = append(queue, later{now.Add(5 * time.Second), info.Name, kind})
		}
		act(now)
		if now.After(killAt) {
			kill()
			kill = worker(t, s.dir, s.cacheDir, s.keyDir)
			killAt, kills = now.Add(7*time.Second), kills+1
		}
		if now.After(lookAt) {
			u := s.usage(t)
			t.Logf("%v: %d started; %.0f MB resident, %d threads, %d files, store %.1f MB", now.Sub(began).Round(time.Second), i, float64(u.resident)/1e6, u.threads, u.files, float64(u.store)/1e6)
			lookAt = now.Add(whole / 40)
			switch i * 4 / runs {
			case 1:
				most(&middle, u)
			case 3:
				most(&end, u)
			}
		}
	}
	kill()
	kill = func() {}
	for left := runs; left > 0; {
		<-time.After(200 * time.Millisecond)
		act(time.Now())
		if time.Since(began) > whole+5*time.Minute {
			t.Fatalf("%d runs have not ended", left)
		}
		left = int(s.count(t, `SELECT count(*) FROM run WHERE state NOT IN ('done', 'failed', 'cancelled')`))
	}
	for bucket, n := range want {
		if v, err := s.bucket.Bucket(fmt.Sprint("b", bucket)).Get(t.Context(), "n"); err != nil || *v != fmt.Sprint(n) {
			t.Errorf("the counter of bucket %d is %v, want %d; %v", bucket, *v, n, err)
		}
	}
	t.Logf("killed %d times; the most in the second quarter: %+v, in the last: %+v", kills, middle, end)
	for _, m := range []struct {
		what        string
		before, now int64
		spare       int64
	}{
		{"bytes of memory", middle.resident, end.resident, 24 << 20},
		{"threads", middle.threads, end.threads, 4},
		{"open files", middle.files, end.files, 4},
		{"bytes of the store", middle.store, end.store, 4 << 20},
	} {
		if m.now > m.before+m.before/10+m.spare {
			t.Errorf("%s: %d in the second quarter, %d in the last", m.what, m.before, m.now)
		}
	}
}
