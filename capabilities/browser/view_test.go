package browser

import (
	"bytes"
	"image"
	"image/png"
	nethttp "net/http"
	"strings"
	"testing"
)

// TestView shows that a page has its whole view, although its window is smaller.
func TestView(t *testing.T) {
	lazy := make(chan bool, 1)
	url, rule := serve(t, nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.URL.Path == "/lazy" {
			select {
			case lazy <- true:
			default:
			}
			return
		}
		html(`<style>body { margin: 0; background: rgb(200, 0, 0); height: 3000px } div { position: fixed; right: 0; bottom: 0; width: 100px; height: 50px; background: rgb(0, 0, 200) }</style>
<div></div><button style="position: fixed; right: 200px; bottom: 20px" onclick="document.title = 'clicked'; this.remove()">Click</button><img loading=lazy src=/lazy style="position: absolute; top: 700px">
<p id=seen style="position: absolute; top: 780px; left: 1200px">x</p><script>
let frames = 0, seen = false; const count = () => { frames++; requestAnimationFrame(count) }; count();
new IntersectionObserver((all) => { seen = all.some((e) => e.isIntersecting) }).observe(document.getElementById("seen"));
const state = async () => {
  const before = frames; await new Promise((done) => setTimeout(done, 200));
  return [innerWidth, innerHeight, screen.width, screen.height, document.visibilityState, matchMedia("(min-width: 1280px)").matches, devicePixelRatio, frames > before, seen].join();
};</script>`).ServeHTTP(w, r)
	}))
	s := newSession(t, rule)
	open(t, s, url)
	p, err := s.Evaluate(t.Context(), "await state()", "[]")
	if got := text(t, p, err); got != `"1280,800,1280,800,visible,true,1,true,true"` {
		t.Errorf("the page has %s", got)
	}
	<-lazy // it is in the view
	picture := func(full bool, selector *string) image.Image {
		t.Helper()
		p, err := s.Screenshot(t.Context(), full, selector)
		b := must(t, p, err).Blob
		defer func() { _ = b.Close() }()
		data := make([]byte, b.Size(t.Context()))
		if _, err := b.ReadAt(data, 0); err != nil {
			t.Fatal(err)
		}
		shown, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return shown
	}
	is := func(shown image.Image, x, y int, want string) {
		t.Helper()
		r, _, b, _ := shown.At(x, y).RGBA()
		if got := map[bool]string{r > b: "red", b > r: "blue"}[true]; got != want {
			t.Errorf("%d, %d of %v is %s, want %s", x, y, shown.Bounds().Max, got, want)
		}
	}
	for range 2 { // and what a picture did to the view is undone
		view := picture(false, nil)
		if view.Bounds().Max != (image.Point{viewWidth, viewHeight}) {
			t.Errorf("the picture has %v", view.Bounds().Max)
		}
		is(view, 5, 5, "red")
		is(view, viewWidth-5, viewHeight-5, "blue")
		is(view, viewWidth-150, viewHeight-5, "red")
		if full := picture(true, nil); full.Bounds().Max != (image.Point{viewWidth, 3000}) {
			t.Errorf("the picture of the page has %v", full.Bounds().Max)
		}
		is(picture(false, new("div")), 90, 40, "blue")
	}
	p, err = s.Click(t.Context(), "button")
	must(t, p, err)
	p, err = s.Evaluate(t.Context(), "document.title + scrollY", "[]")
	if got := text(t, p, err); !strings.HasPrefix(got, `"clicked`) {
		t.Errorf("got %s", got)
	}
	p, err = s.Evaluate(t.Context(), "await state()", "[]")
	if got := text(t, p, err); !strings.HasPrefix(got, `"1280,800,1280,800,visible,true,1,true,`) {
		t.Errorf("afterwards the page has %s", got)
	}
}
