import Expectations
import FoundationEssentials
import HTTPTypes
import Testing

@testable import HTTPSession

@Suite struct PreparedRequestTests {
    private let settings: SessionSettings

    init() throws {
        var configuration = SessionConfiguration()
        configuration.additionalHeaderFields[.userAgent] = "test"
        settings = try SessionSettings(configuration, credentials: CredentialStore(), path: nil)
    }

    private func prepare(_ request: TransferRequest) -> (PreparedRequest, HTTPSessionError?) {
        let job = TaskJob(request, .data, to: .memory(maximumSize: 1), settings: settings)
        return (job.prepared, job.failure)
    }

    private func request(_ url: String) throws -> TransferRequest { TransferRequest(url: try #require(URL(string: url))) }

    @Test func `copies of a request share its preparation`() throws {
        let first = try request("https://example.com/a")
        let copy = first
        let (prepared, failure) = prepare(first)
        expectNil(failure)
        expectEqual(prepared.origin, Origin(first.url))
        #expect(prepared.plan.url == "https://example.com/a" && prepared.plan.headerLines == ["User-Agent: test"])
        #expect(prepare(copy).0 === prepared)
    }

    @Test func `equal requests share their preparation`() throws {
        func polled() throws -> TransferRequest {
            var request = try request("https://example.com/a?b=c")
            request.headerFields[.accept] = "text/plain"
            request.options.requestTimeout = .seconds(3)
            return request
        }
        let prepared = prepare(try polled()).0
        #expect(prepare(try polled()).0 === prepared)
    }

    @Test func `a request that differs in anything that is sent or in an option is prepared again`() throws {
        let first = try request("https://example.com/a")
        var fields = first
        fields.headerFields = [.accept: "text/plain", .acceptLanguage: "de"]
        var reversed = first
        reversed.headerFields = [.acceptLanguage: "de", .accept: "text/plain"]
        var spelled = first
        spelled.headerFields = [try #require(HTTPField.Name("ACCEPT")): "text/plain", .acceptLanguage: "de"]
        var head = first
        head.method = .head
        var urgent = first
        urgent.options.priority = .high
        let user = try request("https://user:password@example.com/a")
        var value = fields
        value.headerFields[.accept] = "text/html"
        let pairs = [
            (first, fields), (fields, reversed), (fields, spelled), (fields, value),
            (first, head), (first, urgent), (first, user),
            (first, try request("https://example.com/A")), (first, try request("https://example.com/a?")),
        ]
        for (one, other) in pairs {
            for (former, next) in [(one, other), (other, one)] {
                let prepared = prepare(former).0
                let (second, failure) = prepare(next)
                #expect(failure == nil && second !== prepared)
            }
        }
        expectEqual(prepare(reversed).0.plan.headerLines.prefix(2), ["Accept-Language: de", "Accept: text/plain"])
        expectEqual(prepare(spelled).0.plan.headerLines.first, "ACCEPT: text/plain")
    }

    @Test func `a changed copy is prepared again`() throws {
        var request = try request("https://example.com/a")
        let (former, _) = prepare(request)
        request.headerFields[.accept] = "text/plain"
        let (changed, _) = prepare(request)
        #expect(changed !== former)
        expectEqual(changed.plan.headerLines, ["Accept: text/plain", "User-Agent: test"])
        expectEqual(former.plan.headerLines, ["User-Agent: test"])
        request.url = try #require(URL(string: "https://example.com/b"))
        expectEqual(prepare(request).0.plan.url, "https://example.com/b")
    }

    @Test func `only the last request is kept`() throws {
        let (first, second) = (try request("https://example.com/a"), try request("https://example.com/b"))
        let former = prepare(first).0
        _ = prepare(second)
        #expect(prepare(first).0 !== former)
    }

    @Test func `a refused request is refused again`() throws {
        let refused = try request("http://example.com/a")
        expectEqual(prepare(refused).1?.code, .insecureConnectionRefused)
        expectEqual(prepare(refused).1?.code, .insecureConnectionRefused)
    }

    @Test func `a request with a body is not kept`() throws {
        var upload = try request("https://example.com/a")
        upload.method = .post
        upload.body = .data(Data([1]))
        let former = prepare(upload).0
        #expect(prepare(upload).0 !== former)
        var other = try request("https://example.com/a")
        other.method = .post
        let empty = prepare(other).0
        #expect(prepare(upload).0 !== empty)
        expectEqual(former.plan.body, .length(1))
    }

    @Test func `a destination that is refused fails a task with a known request`() throws {
        let request = try request("https://example.com/a")
        let prepared = prepare(request).0
        let job = TaskJob(
            request, .download, to: .file(DownloadDestination(URL(fileURLWithPath: "/"))), settings: settings)
        #expect(job.prepared === prepared)
        expectEqual(job.failure?.code, .cannotWriteFile)
    }
}
