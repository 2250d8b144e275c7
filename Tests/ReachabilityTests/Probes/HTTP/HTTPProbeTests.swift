import Expectations
import Expressions
import Testing
import Wire

@testable import Reachability

@Suite struct HTTPProbeTests {
    @Test func `a probe follows redirects to the last response`() throws {
        var probe = HTTPProbe(try HTTPProbeRequest(url: HTTPURL("https://a.example/")))
        expectEqual(probe.next(), .receive)
        probe.receive(Array("HTTP/1.1 301 Moved\r\nLocation: http://b.example/c\r\n".utf8))
        expectEqual(probe.next(), .receive)
        // The body of a redirect is not awaited.
        probe.receive(Array("Content-Length: 1000\r\n\r\n".utf8))
        let second = try HTTPProbeRequest(url: HTTPURL("http://b.example/c"))
        expectEqual(probe.next(), .follow(second))
        #expect(probe.request == second && probe.next() == .receive)
        probe.receive(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no".utf8))
        #expect(probe.next() == .receive && probe.next() == .receive)
        probe.receive(Array("k".utf8))
        #expect(probe.next() == .finished && probe.next() == .finished)
        expectEqual(
            probe.facts,
            HTTPProbeFacts(
                response: HTTPResponseFacts(status: 200, version: "1.1", reason: "OK", receivedBytes: 40, bodyBytes: 2),
                redirects: ["http://b.example/c"], otherHost: "b.example", isDowngraded: true, isRedirectAuthentic: true))
    }

    @Test func `a probe that does not follow redirects reads the redirect to its end`() throws {
        var probe = HTTPProbe(try HTTPProbeRequest(url: HTTPURL("http://a.example/")), isFollowing: false)
        probe.receive(Array("HTTP/1.1 302 Found\r\nLocation: http://b.example/\r\nContent-Length: 2\r\n\r\n".utf8))
        expectEqual(probe.next(), .receive)
        probe.receive(Array("ok".utf8))
        expectEqual(probe.next(), .finished)
        expectEqual(probe.facts.mismatch, HTTPMismatch(.status, expectation: "200-299"))
        #expect(probe.facts.otherHost == "b.example" && probe.facts.redirects.isEmpty)
    }

    @Test func `a body is kept only for an expectation`() throws {
        for expectation in [HTTPExpectation(), HTTPExpectation(excludedBody: try Expression("x"))] {
            var probe = HTTPProbe(try HTTPProbeRequest(url: HTTPURL("http://a.example/")), expecting: expectation)
            probe.receive(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8))
            #expect(probe.next() == .finished && probe.facts.response.bodyBytes == 2)
            expectEqual(probe.exchange.body.count, (expectation.isDeclared ? 2 : 0))
        }
    }

    @Test func `a loop and an invalid response finish a probe`() throws {
        var probe = HTTPProbe(try HTTPProbeRequest(url: HTTPURL("http://a.example/")))
        probe.receive(Array("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n".utf8))
        #expect(probe.next() == .finished && probe.next() == .finished)
        #expect(probe.facts.redirectFailure?.kind == .loop && probe.facts.mismatch == nil)
        probe = HTTPProbe(try HTTPProbeRequest(url: HTTPURL("http://a.example/")))
        probe.endOfInput()
        #expect(probe.next() == .finished && probe.facts.response.failure == .noResponse)
    }
}
