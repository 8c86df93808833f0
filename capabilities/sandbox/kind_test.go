package sandbox

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/turns"
)

func parsed(t *testing.T, text string) (capability.Grant, error) {
	t.Helper()
	r := jsonform.New("manifest", []byte(text))
	g := parse(r, r.Parse())
	if r.Err != nil {
		return nil, fmt.Errorf("%+v", r.Err)
	}
	return g, nil
}

// TestForms reads grants of manifests and command lines, and writes them again.
func TestForms(t *testing.T) {
	for manifest, spec := range map[string]string{
		`{"image":"host"}`: "host",
		`{"image":"a.b-1","memory":"512MiB","disk":"4GiB"}`:                                                                           "a.b-1,memory=512MiB,disk=4GiB",
		`{"image":"host","traffic":"20MiB","network":[{"scheme":"https","host":"a.example.com"}]}`:                                    "host,traffic=20MiB,network=https://a.example.com",
		`{"image":"host","cpu":1.5,"processes":64,"time":"1h"}`:                                                                       "host,cpu=1.5,processes=64,time=60m",
		`{"image":"host","network":[{"scheme":"https","host":"a.example.com"},{"scheme":"http","host":"b.example.com","port":8080}]}`: "host,network=https://a.example.com,network=http://b.example.com:8080",
		`{"image":"host","network":[{"scheme":"https","host":"a.example.com","methods":["GET","POST"],"path":"/x/**","credential":"c","as":"basic"},{"scheme":"https","host":"b.example.com"}],"intercept":true}`: "host,intercept,network=https://a.example.com/x/**,methods=GET+POST,credential=c,as=basic,network=https://b.example.com",
		`{"image":"host","allow":[".git/hooks",".github/workflows"]}`: "host,allow=.git/hooks,allow=.github/workflows",
	} {
		g, err := parsed(t, manifest)
		if err != nil {
			t.Errorf("%s: %v", manifest, err)
			continue
		}
		if again := string(capability.JSON(g.Document())); again != manifest {
			t.Errorf("%s: again %s", manifest, again)
		}
		image, options, _ := strings.Cut(spec, ",")
		given, err := parseSpec(capability.Spec{Name: "box", Argument: image, HasArgument: true, Options: options})
		if err != nil || !given.Covers(g) || !g.Covers(given) {
			t.Errorf("%s: %v, %v", spec, given, err)
		}
	}
	for _, manifest := range []string{
		`true`, `{}`, `{"image":"Host"}`, `{"image":"../x"}`, `{"image":"host","memory":"1GB"}`, `{"image":"host","memory":1073741824}`, `{"image":"host","memory":"9999GiB"}`,
		`{"image":"host","disk":"1MiB"}`, `{"image":"host","traffic":"0MiB"}`, `{"image":"host","traffic":"2048GiB"}`, `{"image":"host","traffic":1}`, `{"image":"host","cpu":0}`, `{"image":"host","cpu":"many"}`, `{"image":"host","processes":1e9}`, `{"image":"host","time":"1ms"}`,
		`{"image":"host","time":"-1h"}`, `{"image":"host","allow":["/etc"]}`, `{"image":"host","allow":["../x"]}`, `{"image":"host","network":true}`, `{"image":"host","network":[{"host":"a.example.com","path":"/x"}]}`,
		`{"image":"host","network":[{"host":"a.example.com","methods":["GET"]}]}`, `{"image":"host","network":[{"host":"*"}]}`, `{"image":"host","network":[{"host":"a.example.com","credential":"c"}]}`,
		`{"image":"host","intercept":true}`, `{"image":"host","network":[{"host":"a.example.com"}],"intercept":false}`, `{"image":"host","network":[{"host":"a.example.com","maxResponse":1}],"intercept":true}`, `{"image":"host","network":["a.example.com"]}`,
	} {
		if g, err := parsed(t, manifest); err == nil {
			t.Errorf("%s: %+v", manifest, g)
		}
	}
	if _, err := parsed(t, `{"image":"host","network":[{"host":"a.example.com","path":"/x"}]}`); err == nil || !strings.Contains(err.Error(), "Message:a rule of sandbox has no path: inside TLS, a proxy sees the host and the port only") {
		t.Errorf("a path: %v", err)
	}
	for _, options := range []string{
		"intercept", "intercept=true,network=https://a.example.com", "network=https://a.example.com,methods=GET", "network=https://a.example.com,credential=c", "network=https://a.example.com/x",
		"methods=GET,intercept,network=https://a.example.com", "intercept,network=https://a.example.com,max-response=1", "rw", "image=x", "memory", "cpu=0", "time=10", "allow=", "allow=\x1b",
	} {
		if g, err := parseSpec(capability.Spec{Name: "box", Argument: "host", HasArgument: true, Options: options}); err == nil {
			t.Errorf("%s: %+v", options, g)
		}
	}
}

// TestCovers compares grants.
func TestCovers(t *testing.T) {
	large := Rights{Image: "host", Limits: Limits{Memory: 4 << 30, CPU: 2}, Allow: []string{".github"}}
	for _, c := range []struct {
		asked Rights
		want  bool
	}{
		{Rights{Image: "host"}, true},
		{Rights{Image: "host", Limits: Limits{Memory: 4 << 30}}, true},
		{Rights{Image: "host", Limits: Limits{Memory: 5 << 30}}, false},
		{Rights{Image: "host", Limits: Limits{Disk: 3 << 30}}, false},
		{Rights{Image: "host", Limits: Limits{Time: time.Hour}}, false},
		{Rights{Image: "other"}, false},
		{Rights{Image: "host", Allow: []string{".github/workflows"}}, true},
		{Rights{Image: "host", Allow: []string{".githubx"}}, false},
		{Rights{Image: "host", Allow: []string{".git/hooks"}}, false},
		{Rights{Image: "host", Network: []http.Rule{{Host: "a.example.com"}}}, false},
		{Rights{Image: "host", Network: []http.Rule{{Host: "a.example.com"}}, Intercept: true}, false},
	} {
		if got := large.Covers(c.asked); got != c.want {
			t.Errorf("%+v: %v", c.asked, got)
		}
	}
}

// TestIntercepted compares, limits and describes grants that end TLS with others.
func TestIntercepted(t *testing.T) {
	tunnel := Rights{Image: "host", Network: []http.Rule{{Host: "*.example.com"}}}
	seen := func(rules ...http.Rule) Rights { return Rights{Image: "host", Network: rules, Intercept: true} }
	repository := http.Rule{Host: "git.example.com", Path: "/team/**", Methods: []string{"GET", "POST"}}
	private := repository
	private.Credential = "c"
	for _, c := range []struct {
		has, asked Rights
		want       bool
	}{
		{tunnel, seen(repository), true},
		{tunnel, seen(private), false},
		{seen(repository), tunnel, false},
		{seen(http.Rule{Host: "*.example.com", Methods: []string{"*"}}), Rights{Image: "host", Network: []http.Rule{{Host: "git.example.com"}}}, false},
		{seen(private), seen(private), true},
		{seen(private), seen(repository), false},
		{seen(http.Rule{Host: "git.example.com", Methods: []string{"*"}}), seen(repository), true},
		{seen(repository), seen(http.Rule{Host: "git.example.com"}), false},
		{seen(repository), Rights{Image: "host"}, true},
	} {
		if got := c.has.Covers(c.asked); got != c.want {
			t.Errorf("%+v covers %+v: %t", c.has, c.asked, got)
		}
	}
	limited := seen(http.Rule{Host: "*.example.com", Methods: []string{"*"}}, http.Rule{Host: "other.org"}).Limit([]capability.Grant{seen(repository)}).(Rights)
	if want := []string{
		"may send and take 1GiB over its network in one call",
		"may use a network there, whose encryption ends in this program, and what programs may send is:",
		"  may send requests of every method to https://*.example.com/**",
		"but only where this allows it as well:",
		"  GET and POST requests to https://git.example.com/team/**",
	}; !slices.Equal(limited.Describe()[3:], want) {
		t.Errorf("got %q", limited.Describe())
	}
	if want := []string{"sandbox network, intercepted, http * https://*.example.com/**", "only within sandbox network, intercepted, http GET,POST https://git.example.com/team/**"}; !slices.Equal(limited.Authority()[7:], want) {
		t.Errorf("got %q", limited.Authority())
	}
	if got := seen(repository).Limit([]capability.Grant{Rights{Image: "host", Limits: Limits{Memory: 64 << 20}}}).(Rights); got.Intercept || len(got.Network) > 0 {
		t.Errorf("a ceiling without a network leaves %+v", got)
	}
	if got := seen(repository).Limit([]capability.Grant{Rights{Image: "host", Limits: Limits{Memory: 64 << 20}, Network: tunnel.Network}}).(Rights); !got.Intercept || len(got.Network) != 1 || len(got.Within) > 0 {
		t.Errorf("a ceiling of tunnels leaves %+v", got)
	}
	if got := seen(private).Describe()[3:]; len(got) != 3 || !strings.Contains(got[2], "with the credential c, which it does not see") || strings.Contains(got[2], "take in") {
		t.Errorf("got %q", got)
	}
}

// TestLimit has a manifest ask for more than the ceiling of a policy.
func TestLimit(t *testing.T) {
	ceiling := []capability.Grant{Rights{Image: "small"}, Rights{Image: "host", Limits: Limits{Memory: 512 << 20, Processes: 64}, Allow: []string{".ci"}}}
	asked := Rights{Image: "host", Limits: Limits{Memory: 8 << 30, CPU: 0.5}, Allow: []string{".ci/run", ".git/hooks"}}
	got, ok := asked.Limit(ceiling).(Rights)
	if !ok || got.Limits != (Limits{512 << 20, 2 << 30, 0.5, 64, 10 * time.Minute, 1 << 30}) || len(got.Allow) != 1 || got.Allow[0] != ".ci/run" || !ceiling[1].Covers(got) {
		t.Errorf("got %+v", got)
	}
	if got := (Rights{Image: "other"}).Limit(ceiling); got != nil {
		t.Errorf("another image: %+v", got)
	}
	if got := (Rights{Image: "small"}).Limit(ceiling); !capability.Same(got, Rights{Image: "small"}) {
		t.Errorf("what is covered: %+v", got)
	}
}

// TestOutput keeps the last part of what is written, however it is written.
func TestOutput(t *testing.T) {
	defer func() {
		if n := allOutput.Free(); n != maxAllOutput {
			t.Errorf("%d bytes are free afterwards", n)
		}
	}()
	for _, size := range []int{1, 7, 4096, 300_000, 3 << 20} {
		o := output{quota: outputOf(t.Context())}
		var want [2]bytes.Buffer
		for i := 0; o.total < 3<<20; i++ {
			part := bytes.Repeat([]byte{byte('a' + i%26)}, size)
			o.add(box.Stream(i/3%2), part)
			want[i/3%2].Write(part)
		}
		var got [2]bytes.Buffer
		for at := uint64(0); ; {
			p := o.read(at)
			if p == nil {
				break
			}
			if p.Offset < at || len(p.Bytes) == 0 || len(p.Bytes) > 256<<10 {
				t.Fatalf("%d: part at %d of %d bytes", size, p.Offset, len(p.Bytes))
			}
			got[p.Stream].Write(p.Bytes)
			at = p.Offset + uint64(len(p.Bytes))
		}
		kept := uint64(got[0].Len() + got[1].Len())
		if kept > maxOutput || kept+o.dropped != o.total || len(o.parts) > 2*maxOutput/256+2 {
			t.Errorf("%d: kept %d, dropped %d of %d in %d parts", size, kept, o.dropped, o.total, len(o.parts))
		}
		for i := range got {
			if !bytes.HasSuffix(want[i].Bytes(), got[i].Bytes()) {
				t.Errorf("%d: stream %d is not the last part", size, i)
			}
		}
		o.close()
	}
	o := output{quota: outputOf(t.Context())}
	first, second := o.subscribe(0), o.subscribe(5)
	dropped := o.subscribe(100)
	if err := dropped.Close(); err != nil || len(o.waiting) != 2 {
		t.Errorf("%d wait, %v", len(o.waiting), err)
	}
	o.add(box.Stdout, []byte("abc"))
	if !first.IsReady() || second.IsReady() || o.read(3) != nil {
		t.Error("three bytes")
	}
	o.end()
	if !second.IsReady() || !o.subscribe(1000).IsReady() {
		t.Error("the end")
	}
	o.close()
}

// TestOutputOfAllCommands has the calls of one user keep the output of many commands that have ended. It is bounded for a call and for the user,
// and the last part of another user's output is kept whole.
func TestOutputOfAllCommands(t *testing.T) {
	line := bytes.Repeat([]byte("x"), 4096)
	var all []*output
	keeps := func(user string, commands int) (bytes int64) {
		ctx := abi.WithCall(turns.For(t.Context(), user))
		for range commands {
			o := &output{quota: outputOf(ctx)}
			for range 2 * maxOutput / len(line) {
				o.add(box.Stdout, line)
			}
			if o.total != o.dropped+uint64(o.kept) {
				t.Errorf("of %d bytes, %d are dropped and %d kept", o.total, o.dropped, o.kept)
			}
			bytes += int64(o.kept)
			all = append(all, o)
		}
		return bytes
	}
	if n := keeps("agent:busy", 40); n > callOutput || n < callOutput/2 {
		t.Errorf("a call keeps %d bytes", n)
	}
	for range 10 {
		keeps("agent:busy", 16)
	}
	if n := allOutput.Free(); n < maxAllOutput/2 || n > maxAllOutput/2+maxOutput {
		t.Errorf("a user leaves %d bytes", n)
	}
	if n := keeps("agent:other", 1); n < maxOutput-int64(len(line)) {
		t.Errorf("another user's output has %d bytes", n)
	}
	for _, o := range all {
		o.close()
	}
	if n := allOutput.Free(); n != maxAllOutput {
		t.Errorf("%d bytes are free afterwards", n)
	}
}
