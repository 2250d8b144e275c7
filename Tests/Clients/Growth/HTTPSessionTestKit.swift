// A program that compiles with a later version of HTTPSessionTestKit, in which a line follows each of these:
//   SocketAddress.swift: `case unix(String)` `case abstract(String)`
//   StubResponse.swift: `case reset` `case never`
//   ProxyServer.swift: `case unreachable` `case timedOut`
import HTTPSessionTestKit

func text(_ address: ListeningAddress) -> String {
    switch address {
    case .ip(let text, _), .unix(let text): text
    @unknown default: "something new"
    }
}

func text(_ ending: StubResponse.Ending) -> String {
    switch ending {
    case .orderly, .truncated, .reset: "known"
    @unknown default: "something new"
    }
}

func text(_ outcome: ProxyServer.Passage.Outcome) -> String {
    switch outcome {
    case .forwarded, .unauthorized, .foreignHost, .unreachable: "known"
    @unknown default: "something new"
    }
}

private let later1: ListeningAddress = .abstract("a")  // later version
private let later2: StubResponse.Ending = .never  // later version
private let later3: ProxyServer.Passage.Outcome = .timedOut  // later version
