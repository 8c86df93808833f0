package toolcontent

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"runtime"
	"strings"
	"testing"
)

func picture(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sized is a picture whose head claims a size.
func sized(t testing.TB, width, height uint32) []byte {
	data := bytes.Clone(picture(t))
	binary.BigEndian.PutUint32(data[16:], width)
	binary.BigEndian.PutUint32(data[20:], height)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	return data
}

func part(kind, mime string, data []byte, more string) string {
	return fmt.Sprintf(`{"content":[{"type":%q,"mimeType":%q,"data":%q%s}]}`, kind, mime, base64.StdEncoding.EncodeToString(data), more)
}

func TestParse(t *testing.T) {
	wav := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt "), make([]byte, 8)...)
	webp := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00"), 0, 0, 0, 0, 9, 0, 0, 9, 0, 0)
	for name, c := range map[string]struct {
		output string
		ok     bool
	}{
		"a text":                    {`{"content":[{"type":"text","text":"a"}]}`, true},
		"a picture":                 {part("image", "image/png", picture(t), ""), true},
		"webp":                      {part("image", "image/webp", webp, ""), true},
		"a sound":                   {part("audio", "audio/wav", wav, ""), true},
		"a file":                    {part("file", "application/pdf", []byte("x"), `,"name":"a b.pdf"`), true},
		"an empty file":             {part("file", "text/plain", []byte{}, `,"name":"a"`), true},
		"a picture of another type": {part("image", "image/jpeg", picture(t), ""), false},
		"a page as a picture":       {part("image", "image/png", []byte("<html><script>"), ""), false},
		"svg, which has scripts":    {part("image", "image/svg+xml", []byte("<svg/>"), ""), false},
		"a bomb":                    {part("image", "image/png", sized(t, 16_000, 16_000), ""), false},
		"a long bomb":               {part("image", "image/png", sized(t, 1<<30, 1), ""), false},
		"a page as a sound":         {part("audio", "audio/wav", []byte("<html>"), ""), false},
		"a video":                   {part("video", "video/mp4", []byte("x"), ""), false},
		"a file that climbs":        {part("file", "text/plain", []byte("x"), `,"name":"../a"`), false},
		"a hidden file":             {part("file", "text/plain", []byte("x"), `,"name":".bashrc"`), false},
		"a name that lies":          {part("file", "text/plain", []byte("x"), `,"name":"a\u202egpj.exe"`), false},
		"a type that ends a line":   {part("file", "text/plain\r\nx: y", []byte("x"), `,"name":"a"`), false},
		"a file without bytes":      {`{"content":[{"type":"file","name":"a","mimeType":"text/plain"}]}`, false},
		"a link":                    {`{"content":[{"type":"link","text":"https://evil.example/?x"}]}`, false},
		"more":                      {`{"content":[{"type":"text","text":"a"}],"_meta":{}}`, false},
		"annotations":               {`{"content":[{"type":"text","text":"a","annotations":{"priority":1}}]}`, false},
		"nothing":                   {`{"content":[]}`, false},
		"too many":                  {`{"content":[` + strings.Repeat(`{"type":"text","text":""},`, 16) + `{"type":"text","text":""}]}`, false},
		"an end, and more":          {`{"content":[{"type":"text","text":"a"}]} {}`, false},
		"no end":                    {`{"content":[{"type":"text","text":"a"}`, false},
		"content twice":             {`{"content":[{"type":"text","text":"a"}],"content":[]}`, false},
		"too large":                 {`{"content":[{"type":"text","text":"` + strings.Repeat("x", MaxBytes) + `"}]}`, false},
	} {
		if parts, ok := Parse([]byte(c.output)); ok != c.ok || ok == (parts == nil) {
			t.Errorf("%s: %v", name, ok)
		}
	}
}

// Parse takes little for a result that looks like parts and has millions of small values.
func TestParseTakesLittle(t *testing.T) {
	for _, item := range []string{"{}", "0", "null", "[]", `{"type":"text"}`} {
		output := []byte(`{"content":[` + strings.Repeat(item+",", MaxBytes/(len(item)+1)-8) + item + `]}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, ok := Parse(output); ok {
			t.Errorf("%s: it is shown", item)
		}
		runtime.ReadMemStats(&after)
		if took, most := after.TotalAlloc-before.TotalAlloc, uint64(4*MaxBytes); took > most {
			t.Errorf("%s: %d bytes were allocated for %d; want %d at most", item, took, len(output), most)
		}
	}
}

// FuzzParse reads results. What it takes has the bounds that it promises.
func FuzzParse(f *testing.F) {
	f.Add(part("image", "image/png", picture(f), ""))
	f.Add(part("file", "text/plain", []byte("x"), `,"name":"a"`))
	f.Add(`{"content":[{"type":"text","text":"a"}]}`)
	f.Fuzz(func(t *testing.T, output string) {
		parts, ok := Parse([]byte(output))
		if !ok {
			return
		}
		if len(parts) > MaxParts {
			t.Fatal("too many parts")
		}
		again, err := json.Marshal(map[string]any{"content": parts})
		if err != nil {
			t.Fatal(err)
		}
		_ = again
		for _, p := range parts {
			if strings.ContainsAny(p.Name+p.MIMEType, "/\\\n") && p.Type == "file" && strings.ContainsAny(p.Name, "/\\\n") {
				t.Fatalf("%q", p.Name)
			}
		}
	})
}
