module github.com/stilehost/stile/guest-sdk/go

go 1.26
