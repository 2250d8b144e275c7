import Dispatch
import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPSessionCompatibility
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// The documented behavior of AFNetworking's AFHTTPSessionManager.
@Suite(.timeLimit(.minutes(20))) struct ManagerTests {
    /// A server that returns the received request as JSON.
    private func echo() throws -> TestServer {
        try TestServer { request in
            let recorded: [String: String] = [
                "method": request.method, "target": request.target, "body": request.text,
                "type": request["content-type"] ?? "-", "kind": request["x-kind"] ?? "-",
                "authorization": request["authorization"] ?? "-",
            ]
            let body = (try? JSONEncoder().encode(recorded)) ?? Data()
            return StubResponse(fields: ["Content-Type": "application/json"], body: .bytes(body))
        }
    }

    private func manager(
        _ server: TestServer, _ path: String = "/v1", serializer: any RequestSerializer = HTTPRequestSerializer(),
        validation: ResponseValidation = ResponseValidation(), queue: DispatchQueue? = nil, group: DispatchGroup? = nil
    ) throws -> HTTPSessionManager {
        try HTTPSessionManager(
            baseURL: server.origin + path, configuration: localConfiguration(), requestSerializer: serializer,
            validation: validation, completionQueue: queue, completionGroup: group)
    }

    // MARK: Methods

    @Test(arguments: ["/v1", "/v1/"])
    func `each method resolves its path against the base URL and sends its parameters in the query or the body`(_ base: String)
        async throws
    {
        let server = try echo()
        let session = try manager(server, base)
        let tasks = [
            session.get("a", parameters: ["k": "v w"]), session.head("a", parameters: ["k": "v w"]),
            session.delete("a", parameters: ["k": "v w"]), session.post("a", parameters: ["k": "v w"]),
            session.put("a", parameters: ["k": "v w"]), session.patch("a", parameters: ["k": "v w"]), session.post("a"),
        ]
        var recorded: [String] = []
        for task in tasks {
            let json = try await task.json()
            recorded.append(["method", "target", "body", "type"].map { json?[$0]?.string ?? "" }.joined(separator: " "))
        }
        expectEqual(
            recorded,
            [
                "GET /v1/a?k=v%20w  -", "   ", "DELETE /v1/a?k=v%20w  -",
                "POST /v1/a k=v%20w application/x-www-form-urlencoded", "PUT /v1/a k=v%20w application/x-www-form-urlencoded",
                "PATCH /v1/a k=v%20w application/x-www-form-urlencoded", "POST /v1/a  application/x-www-form-urlencoded",
            ])
        expectEqual(server.requests.filter { $0.method == "HEAD" }.map(\.target), ["/v1/a?k=v%20w"])
    }

    @Test func `a multipart form is posted below the base URL, parameters first`() async throws {
        let server = try echo()
        let session = try manager(server)
        var form = try MultipartForm(boundary: "B")
        try form.appendPart(data: Data("bytes".utf8), name: "file", fileName: "a.txt", mimeType: "text/plain")
        let json = try await session.post("up", parameters: ["k": "v"], form: form).json()
        expectEqual(json?["target"]?.string, "/v1/up")
        expectEqual(json?["type"]?.string, "multipart/form-data; boundary=B")
        expectEqual(
            json?["body"]?.string,
            "--B\r\nContent-Disposition: form-data; name=\"k\"\r\n\r\nv\r\n--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nbytes\r\n--B--\r\n"
        )
        expectEqual(server.requests.first?["content-length"], "\(server.requests.first?.bodyLength ?? 0)")
    }

    @Test func `header fields of a request override those of the request serializer`() async throws {
        let server = try echo()
        var serializer = HTTPRequestSerializer()
        try serializer.setValue("all", forHTTPHeaderField: "X-Kind")
        let session = try manager(server, serializer: serializer)
        try await expectEqual(session.get("a").json()?["kind"]?.string, "all")
        let name = try #require(HTTPField.Name("x-kind"))
        try await expectEqual(session.get("a", headerFields: [name: "one"]).json()?["kind"]?.string, "one")
    }

    @Test func `Basic authorization of the request serializer is sent without a challenge`() async throws {
        let server = try echo()
        var serializer = HTTPRequestSerializer()
        try serializer.setAuthorizationHeaderField(username: "user", password: "password")
        let session = try manager(server, serializer: serializer)
        try await expectEqual(session.get("a").json()?["authorization"]?.string, "Basic dXNlcjpwYXNzd29yZA==")
    }

    @Test func `the fields of a JSON serializer are sent with a multipart form too`() async throws {
        let server = try echo()
        var base = HTTPRequestSerializer()
        try base.setAuthorizationHeaderField(username: "user", password: "password")
        for serializer: any RequestSerializer in [JSONRequestSerializer(base: base), PropertyListRequestSerializer(base: base)] {
            let session = try manager(server, serializer: serializer)
            var form = MultipartForm()
            try form.appendPart(form: Data("v".utf8), name: "k")
            try await expectEqual(session.post("a", form: form).json()?["authorization"]?.string, "Basic dXNlcjpwYXNzd29yZA==")
        }
    }

    @Test(arguments: [
        ("/v1", "", "/v1/"), ("/v1?x=y", "a", "/v1/a"), ("/v1?x=y", "", "/v1/?x=y"), ("", "a", "/a"), ("/v1", "/a", "/a"),
        ("/v1", "?q", "/v1/?q"),
        ("/v1", "../a", "/a"), ("/v1/x", "a b", "/v1/x/a%20b"),
    ]) func `URLs are resolved against the base URL`(_ base: String, _ address: String, _ target: String) async throws {
        let server = try echo()
        try await expectEqual(manager(server, base).get(address).json()?["target"]?.string, target)
    }

    @Test(arguments: [
        "", "nonsense", "ftp://example.com/", "/path", "https://", "https://exam ple.com/", "https://a.example:99999/",
        "https://a.example/\n", "https://a.example/\0",
    ])
    func `an invalid base URL is a configuration error`(_ text: String) {
        let error = HTTPSessionError.thrown { try HTTPSessionManager(baseURL: text) }
        expectEqual(error?.code, .invalidConfiguration, "\(text.debugDescription)")
    }

    @Test func `parameters that cannot be serialized fail the task before it connects`() async throws {
        let server = try echo()
        var serializer = HTTPRequestSerializer()
        serializer.queryStringSerialization = .custom { _, _ in throw Refusal() }
        let session = try manager(server, serializer: serializer)
        let task = session.get("a", parameters: ["a": 1])
        let error = await failure(task)
        #expect(error?.code == .cannotEncodeRequest && error?.underlying is Refusal)
        expectEqual(server.seen.connections, 0)
        let recorded = Locked<[String]>([])
        let end = Signal()
        session.get(
            "a", parameters: ["a": 1], success: { _, _ in },
            failure: { _, error in
                recorded.withLock { $0.append(error.code.rawValue) }
                end.fire()
            })
        await end.wait()
        expectEqual(recorded.withLock { $0 }, ["cannot-encode-request"])
    }

    // MARK: Callbacks

    /// The result that a callback received.
    private func callback(_ ask: (@escaping HTTPSessionManager.Success, @escaping HTTPSessionManager.Failure) -> TransferTask)
        async -> Result<JSONValue?, HTTPSessionError>?
    {
        let result = Locked<Result<JSONValue?, HTTPSessionError>?>(nil)
        let end = Signal()
        let calls = Counter()
        let task = ask(
            { _, json in
                result.withLock { $0 = .success(json) }
                calls.add()
                end.fire()
            },
            { _, error in
                result.withLock { $0 = .failure(error) }
                calls.add()
                end.fire()
            })
        await end.wait()
        #expect(task.state == .finished && calls.count == 1)
        return result.withLock { $0 }
    }

    @Test(arguments: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
    func `the success callback is called for 200, the failure callback for 404`(
        _ method: String
    ) async throws {
        let server = try TestServer { request in
            StubResponse(request.path == "/v1/good" ? 200 : 404, fields: ["Content-Type": "application/json"], body: "{\"a\":1}")
        }
        let session = try manager(server)
        for path in ["good", "bad"] {
            let result = await callback { success, failure in
                switch method {
                case "GET": session.get(path, success: success, failure: failure)
                case "HEAD": session.head(path, success: success, failure: failure)
                case "POST": session.post(path, success: success, failure: failure)
                case "PUT": session.put(path, success: success, failure: failure)
                case "PATCH": session.patch(path, success: success, failure: failure)
                default: session.delete(path, success: success, failure: failure)
                }
            }
            switch result {
            case .success(let json)?: #expect(path == "good" && (method == "HEAD" ? json == nil : json == ["a": 1]))
            case .failure(let error)?:
                #expect(path == "bad" && error.code == .unacceptableStatus && error.context.statusCode == 404)
                expectEqual(error.context.responseBody, Data((method == "HEAD" ? "" : "{\"a\":1}").utf8))
            case nil: Issue.record("nothing was called")
            }
        }
        expectEqual(server.requests.map(\.method), [method, method])
    }

    @Test func `204 is a success without a value`() async throws {
        let server = try TestServer { _ in StubResponse(204) }
        let session = try manager(server)
        guard case .success(nil)? = await callback({ session.get("a", success: $0, failure: $1) }) else {
            Issue.record("204 did not call success without a value")
            return
        }
    }

    @Test func `an unacceptable content type and a failed check call the failure callback`() async throws {
        let server = try TestServer { request in
            StubResponse(fields: ["Content-Type": request.path == "/v1/html" ? "text/html" : "application/json"], body: "{}")
        }
        let session = try manager(server)
        guard case .failure(let error)? = await callback({ session.get("html", success: $0, failure: $1) }) else {
            Issue.record("text/html was accepted as JSON")
            return
        }
        expectEqual(error.code, .unacceptableContentType)
        let checking = try manager(server, validation: ResponseValidation(checks: [{ _ in throw Refusal() }]))
        guard case .failure(let error)? = await callback({ checking.get("a", success: $0, failure: $1) }) else {
            Issue.record("the session's check did not run")
            return
        }
        #expect(error.code == .badServerResponse && error.underlying is Refusal)
    }

    @Test func `callbacks run on the completion queue and enter the group`() async throws {
        let server = try echo()
        let queue = DispatchQueue(label: "callbacks")
        let key = DispatchSpecificKey<Bool>()
        queue.setSpecific(key: key, value: true)
        let group = DispatchGroup()
        let session = try manager(server, queue: queue, group: group)
        let places = Locked<[Bool]>([])
        for path in ["a", "b"] {
            session.post(
                path, parameters: ["k": "v"],
                progress: { _ in places.withLock { $0.append(DispatchQueue.getSpecific(key: key) == true) } },
                success: { _, _ in places.withLock { $0.append(DispatchQueue.getSpecific(key: key) == true) } },
                failure: { _, _ in })
        }
        let end = Signal()
        group.notify(queue: queue) { end.fire() }
        await end.wait()
        #expect(places.withLock { $0.count } >= 2 && places.withLock { $0.allSatisfy(\.self) })
    }

    @Test func `progress of downloads and uploads reaches its total`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(300_000)) }
        let session = try localSession()
        let task = session.dataTask(
            for: TransferRequest(url: server.url(), method: .post, body: .data(Data(count: 200_000))), startsImmediately: false)
        let (down, up) = (task.foundationProgress(.download), task.foundationProgress(.upload))
        task.resume()
        _ = try await task.response
        // The progress objects are updated on the session's delivery queue.
        let end = Signal()
        let last = session.dataTask(for: TransferRequest(url: server.url()))
        session.respond(
            to: last, with: HTTPResponseSerializer(), success: { _, _ in end.fire() }, failure: { _, _ in end.fire() })
        await end.wait()
        #expect(down.fractionCompleted == 1 && down.totalUnitCount == 300_000)
        #expect(up.fractionCompleted == 1 && up.totalUnitCount == 200_000)
    }

    @Test func `a Foundation Progress pauses, resumes and cancels its task`() async throws {
        let gate = try Gate()
        let body = StubBody([.pattern(from: 0, count: 1_000), .wait(.gate(gate)), .pattern(from: 1_000, count: 1_000)])
        let server = try TestServer { _ in StubResponse(body: body) }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        let progress = task.foundationProgress(.download)
        await task.awaitProgress { $0.bytesReceived == 1_000 }
        for round in 1...20 {
            progress.pause()
            await log.await("suspended", times: round)
            progress.resume()
            await log.await("resumed", times: round + 1)
        }
        // Whichever call runs first, the last one decides.
        for _ in 0..<100 {
            progress.pause()
            progress.resume()
        }
        progress.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
    }

    @Test(arguments: [TransferTask.Kind.data, .upload, .download])
    func `a notification is posted when a data, upload or download task is resumed, suspended and completed`(
        _ kind: TransferTask.Kind
    ) async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let folder = try ScratchDirectory()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [NotificationMonitor()])
        let request = TransferRequest(url: server.url(), method: .post, body: kind == .upload ? .data(Data("a".utf8)) : .none)
        let task =
            kind == .download
            ? session.downloadTask(for: request, to: .init(folder.url("file")), startsImmediately: false)
            : session.dataTask(for: request, startsImmediately: false)
        expectEqual(task.kind, kind)
        let recorded = Locked<[String]>([])
        let end = Signal()
        // The center delivers them on threads of its own, in any order.
        @Sendable func record(_ text: String) {
            let count = recorded.withLock { recorded in
                recorded.append(text)
                return recorded.count
            }
            if count == 4 { end.fire() }
        }
        let center = NotificationCenter.default
        let tokens = [
            center.addObserver(of: task, for: .taskDidResume) { _ in record("resumed") },
            center.addObserver(of: task, for: .taskDidSuspend) { _ in record("suspended") },
            center.addObserver(of: task, for: .taskDidComplete) { message in
                record("completed after \((try? message.result.get().metrics.transactions.count) ?? 0)")
            },
        ]
        task.resume()
        try await server.awaitRequests(1)
        task.suspend()
        task.suspend()
        task.resume()
        gate.open()
        await end.wait()
        expectEqual(recorded.withLock { $0.sorted() }, ["completed after 1", "resumed", "resumed", "suspended"])
        for token in tokens { center.removeObserver(token) }
    }

    // MARK: Setting the policy

    @Test(
        arguments: [
            ("https://example.com", SecurityPolicy.PinningMode.none, true), ("http://example.com", .none, true),
            (nil, .none, true),
            ("https://example.com", .certificate, true), ("http://example.com", .certificate, false),
            ("https://example.com", .publicKey, true), ("http://example.com", .publicKey, false), (nil, .certificate, false),
            (nil, .publicKey, false), ("HTTPS://example.com", .publicKey, true),
        ] as [(String?, SecurityPolicy.PinningMode, Bool)])
    func `pinning requires an https base URL`(_ base: String?, _ mode: SecurityPolicy.PinningMode, _ isTaken: Bool) throws {
        var configuration = localConfiguration()
        configuration.securityPolicy = SecurityPolicy(pinningMode: mode, pinnedCertificates: try MintedCertificates.set("leaf"))
        let error = HTTPSessionError.thrown { try HTTPSessionManager(baseURL: base, configuration: configuration) }
        expectEqual(error?.code, (isTaken ? nil : .invalidConfiguration))
    }
}
