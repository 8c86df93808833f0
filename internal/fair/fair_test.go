package fair

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestLaterUsers has one user after another take all that they get, byte by byte. Each of them gets something.
func TestLaterUsers(t *testing.T) {
	b := NewBudget(1 << 10)
	for i, want := range []int64{512, 256, 128, 64, 32, 16, 8, 4, 2, 1} {
		user, got := fmt.Sprint("user", i), int64(0)
		for b.Take(user, 1) {
			got++
		}
		if got != want {
			t.Errorf("user %d got %d, not %d", i, got, want)
		}
		if b.Take(user, 1<<10) || b.Take(user, 2) {
			t.Errorf("user %d got more", i)
		}
	}
	if b.Give("user0", 512); !b.Take("user9", 200) {
		t.Error("what is given back does not serve others")
	}
	if all := b.Free(); !b.Take("", all) || b.Take("", 1) || !b.Take("user10", 0) {
		t.Error("nobody gets what is free")
	}
}

// TestBudget has users take and give at random: nothing is lost, and nobody has more than half.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 1000).Draw(t, "limit")
		b := NewBudget(limit)
		has := map[string]int64{}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			user := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "user")
			if n := rapid.Int64Range(0, limit).Draw(t, "n"); rapid.Bool().Draw(t, "take") {
				if b.Take(user, n) {
					has[user] += n
				}
			} else if n <= has[user] {
				b.Give(user, n)
				has[user] -= n
			}
			free := limit
			for _, n := range has {
				free -= n
			}
			if free != b.Free() || has[user] > limit/2 {
				t.Fatalf("%d are free, not %d: %v", b.Free(), free, has)
			}
		}
		for user, n := range has {
			b.Give(user, n)
		}
		if b.Free() != limit || len(b.users) > 0 {
			t.Fatalf("in the end: %+v", b)
		}
	})
}

// TestUses has two users use the same things.
func TestUses(t *testing.T) {
	var u Uses[string]
	begin := func(want bool, user, thing string, size int64) {
		t.Helper()
		if u.Begin(user, thing, size, 10) != want {
			t.Errorf("%s of %s: not %v", thing, user, want)
		}
	}
	begin(true, "a", "large", 100) // nothing else is used
	begin(true, "a", "large", 100)
	begin(false, "a", "small", 1)
	begin(true, "b", "small", 4)
	begin(true, "b", "medium", 6)
	begin(true, "b", "small", 4) // counted once
	begin(false, "b", "tiny", 1)
	if a, b, none := u.Size("a"), u.Size("b"), u.Size("c"); a != 100 || b != 10 || none != 0 {
		t.Errorf("they use %d, %d and %d", a, b, none)
	}
	u.End("b", "small", 4)
	begin(false, "b", "tiny", 1)
	u.End("b", "small", 4)
	begin(true, "b", "tiny", 1)
	u.End("a", "large", 100)
	begin(false, "a", "small", 1)
	u.End("a", "large", 100)
	begin(true, "a", "small", 1)
	u.End("a", "small", 1)
	u.End("b", "medium", 6)
	u.End("b", "tiny", 1)
	if len(u.users) > 0 {
		t.Errorf("in the end: %v", u.users)
	}
}
