// A program that compiles with a later version of HTTPSessionTestKit, in which a line follows each of these:
//   ListeningAddress.swift: `case unix(String)` `case abstract(String)`
//   StubResponse.swift: `case reset` `case never`
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

private let later1: ListeningAddress = .abstract("a")  // later version
private let later2: StubResponse.Ending = .never  // later version
