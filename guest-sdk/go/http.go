//go:build wasip1

package stile

// maxBody is how many bytes of a response Send reads.
const maxBody = 8 << 20

// Send makes a request with a text as its body, follows redirects that the grant allows, and returns the status and the body of at
// most 8 MiB. Start offers more.
func (r *HTTPClient) Send(method, url, body string) (status uint16, text string, err error) {
	request := HTTPRequest{Method: method, URL: url, Content: HTTPContentNone{}, Redirect: HTTPRedirectFollow}
	if body != "" {
		request.Content = HTTPContentText{body}
	}
	exchange, err := r.Start(request)
	if err != nil {
		return 0, "", err
	}
	defer exchange.Drop()
	ready := exchange.Subscribe(HTTPStageWhole{})
	ready.Block()
	ready.Drop()
	head, err := exchange.Head()
	if err != nil {
		return 0, "", err
	}
	text, err = exchange.Text(maxBody)
	return head.Status, text, err
}
