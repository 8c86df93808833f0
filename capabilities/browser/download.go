package browser

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/chromium"
)

// download is a file that a page downloads to the browser's own disk.
type download struct {
	id    string
	state string // "inProgress", "completed" or "canceled"
	large bool
}

// maxDownloads is how many files of a page are kept at a time. Further ones are refused.
const maxDownloads = 4

// isDownloadID reports whether a text can be the browser's name of a download, which becomes the name of a file.
func isDownloadID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "0123456789abcdef-") == ""
}

// downloadBegins follows a download. The caller holds t.mu.
func (t *tab) downloadBegins(event chromium.Event) {
	var e struct{ GUID string }
	if !decode(event, &e) || !isDownloadID(e.GUID) {
		return
	}
	if len(t.downloads) == maxDownloads {
		t.cancel(e.GUID)
		return
	}
	t.downloads = append(t.downloads, &download{id: e.GUID, state: "inProgress"})
	t.change()
}

// downloadContinues follows a download. The caller holds t.mu.
func (t *tab) downloadContinues(event chromium.Event) {
	var e struct {
		GUID                      string
		TotalBytes, ReceivedBytes float64
		State                     string
	}
	if !decode(event, &e) {
		return
	}
	for _, d := range t.downloads {
		if d.id != e.GUID {
			continue
		}
		if max(e.TotalBytes, e.ReceivedBytes) > maxDownload && !d.large {
			d.large = true
			t.cancel(d.id)
		}
		if d.state != e.State {
			d.state = e.State
			t.change()
		}
	}
}

func (t *tab) cancel(id string) {
	t.browser.Send(t.control, "Browser.cancelDownload", map[string]any{"guid": id, "browserContextId": t.context})
}

// downloading reports whether there are more downloads than so many.
func (t *tab) downloading(than int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.downloads) > than
}

// downloadSoon is how long a download may take to begin.
const downloadSoon = time.Second

// Download is `download`.
func (s *Session) Download(ctx context.Context) (*Pending, error) {
	return s.begin(ctx, "download", openPage, func(ctx context.Context, t *tab) (result, error) {
		// What began a download has ended before the browser says so.
		soon, cancel := context.WithTimeout(ctx, downloadSoon)
		defer cancel()
		if err := t.until(soon, func() bool { return len(t.downloads) > 0 }); err != nil {
			if soon.Err() != nil && ctx.Err() == nil {
				err = nil
			}
			return result{}, err
		}
		t.mu.Lock()
		d := t.downloads[len(t.downloads)-1]
		t.mu.Unlock()
		err := t.until(ctx, func() bool { return d.state != "inProgress" })
		if err != nil {
			t.cancel(d.id)
			return result{}, err
		}
		t.mu.Lock()
		t.downloads = nil // older ones are not asked for any more
		t.mu.Unlock()
		switch {
		case d.large:
			return result{}, &abi.Error{Code: abi.CodeTooLarge, Size: maxDownload}
		case d.state != "completed":
			return result{}, abi.Errorf(abi.CodeUnavailable, "the download was not completed")
		}
		path := filepath.Join(t.folder, d.id)
		file, err := t.browser.Open(path)
		if err != nil {
			return result{}, abi.Errorf(abi.CodeUnavailable, "the download cannot be read")
		}
		defer file.Close()
		b, err := s.blob(ctx, "application/octet-stream", maxDownload, file)
		_ = t.browser.RemoveAll(t.folder) // it is on the browser's own disk
		return result{Outcome: Outcome{Case: OutcomeBlob, Blob: b}}, err
	})
}
