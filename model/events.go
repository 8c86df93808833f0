package model

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// events yields the data of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), whose lines end as
// in HTTP. It ignores the other fields, because both protocols repeat them in the data. It also ignores events without data, and an
// event that the end of the stream cuts off. from fails after maxStream bytes, which bounds the memory of an event.
func events(from io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, maxStream+1)
		var data []byte
		some := false
		for lines.Scan() {
			name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
			switch {
			case len(lines.Bytes()) == 0:
				if some && !yield(data, nil) {
					return
				}
				data, some = nil, false
			case string(name) == "data":
				if some {
					data = append(data, '\n')
				}
				data, some = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}
