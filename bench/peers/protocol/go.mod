module github.com/stilehost/stile/bench/peers/protocol

go 1.26.0
