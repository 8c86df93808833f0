package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/toolcontent"
)

// outputFlag says where the result of a tool goes.
type outputFlag struct {
	Output string `short:"o" placeholder:"FILE" help:"Write the result to a file instead of stdout: a picture, sound or file as its bytes, and anything else as JSON. Several get numbers, as in chart-1.png and chart-2.png. In a folder (out/ makes one), each gets its own name, and nothing is replaced. Texts beside them are still printed."`
}

// ready refuses an output that cannot be written, before a call has effects.
func (f outputFlag) ready() error {
	if f.Output == "" || os.IsPathSeparator(f.Output[len(f.Output)-1]) {
		return nil
	}
	if info, err := os.Stat(f.Output); err == nil && info.IsDir() {
		return nil
	}
	if err := regular(f.Output); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Dir(f.Output)); err != nil || !info.IsDir() {
		return usagef("--output %s: there is no folder %s; make it, or name another file", line(f.Output, 200), line(filepath.Dir(f.Output), 200))
	}
	return nil
}

// result prints or writes the result of a tool. A terminal is told of pictures, sounds and files; anything else gets JSON. What cannot be
// written is printed as JSON, because the call may have been expensive.
func (f outputFlag) result(s *streams, output []byte) error {
	parts, ok := toolcontent.Parse(output)
	if f.Output != "" {
		texts, err := f.write(s, output, parts)
		text := contentText(texts)
		if err != nil {
			text = string(escape(output)) + "\n"
		}
		_, printErr := fmt.Fprint(s.out, text)
		return errors.Join(err, printErr)
	}
	if _, person := terminal(s.out); !ok || !person {
		_, err := fmt.Fprintf(s.out, "%s\n", escape(output))
		return err
	}
	_, err := fmt.Fprint(s.out, contentText(parts))
	return err
}

// write writes a result with its parts, and returns the texts that are left to print.
func (f outputFlag) write(s *streams, output []byte, parts []toolcontent.Part) (texts []toolcontent.Part, err error) {
	var files []toolcontent.Part
	for _, p := range parts {
		if p.Type == "text" {
			texts = append(texts, p)
		} else {
			files = append(files, p)
		}
	}
	if len(files) == 0 {
		files, texts = []toolcontent.Part{{Name: "result.json", Data: append(escape(output), '\n')}}, nil
	}
	info, missing := os.Stat(f.Output)
	folder := missing == nil && info.IsDir() || os.IsPathSeparator(f.Output[len(f.Output)-1])
	if folder {
		if err := os.MkdirAll(f.Output, 0o777); err != nil {
			return nil, &usageError{err}
		}
	} else if err := regular(f.Output); err != nil {
		return nil, err
	}
	for i, p := range files {
		name := f.Output
		switch {
		case folder:
			name, err = newFile(f.Output, ownName(p))
		case len(files) > 1:
			ext := filepath.Ext(name)
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), i+1, suffix(p))
		}
		if err != nil {
			return nil, err
		}
		if err := writeFile(name, p.Data); err != nil {
			return nil, err
		}
		s.say("stile: wrote %s (%s)", line(name, 200), about(int64(len(p.Data))))
	}
	return texts, nil
}

// newFile makes an empty file in a folder and returns its path. The file gets the name, or one with a number: a tool that chooses names must
// not replace files.
func newFile(folder, name string) (string, error) {
	const most = 10_000
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 1; n <= most; n++ {
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", stem, n, ext)
		}
		at := filepath.Join(folder, name)
		file, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", &usageError{err}
		}
		return at, file.Close()
	}
	return "", usagef("%s has %d files of this name; name another folder", folder, most)
}

// ownName is the name of a part in a folder. None begins with "-": programs would take it for a flag, as in rm *.
func ownName(p toolcontent.Part) string {
	if strings.HasPrefix(p.Name, "-") {
		return "_" + p.Name
	}
	if p.Name != "" {
		return p.Name
	}
	return p.Type + suffix(p)
}

var plainExtension = lazyregexp.New(`^\.[A-Za-z0-9]{1,10}$`)

// suffix is the end of the name of a part's file, with its dot: that of its own name, or of its type.
func suffix(p toolcontent.Part) string {
	if ext := filepath.Ext(p.Name); plainExtension.MatchString(ext) {
		return ext
	}
	switch p.MIMEType {
	case "image/png", "image/gif", "image/webp", "audio/wav", "audio/ogg", "audio/flac", "audio/webm":
		return "." + p.MIMEType[len("image/"):]
	case "image/jpeg":
		return ".jpg"
	case "audio/mpeg":
		return ".mp3"
	case "audio/mp4":
		return ".m4a"
	default:
		return ""
	}
}

// contentText says on a terminal what a result has.
func contentText(parts []toolcontent.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.Type == "text":
			b.WriteString(printable.Text(p.Text) + "\n")
		case p.Name != "":
			fmt.Fprintf(&b, "[%s, %s, %s; --output FILE writes it]\n", line(p.Name, 128), p.MIMEType, about(int64(len(p.Data))))
		default:
			fmt.Fprintf(&b, "[%s, %s; --output FILE writes it]\n", p.MIMEType, about(int64(len(p.Data))))
		}
	}
	return b.String()
}
