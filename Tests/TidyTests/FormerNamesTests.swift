import Testing

/// Names of Network and URLSession that a program uses from memory: the compiler names the replacement.
@Suite(.timeLimit(.minutes(5))) struct FormerNamesTests {
    /// A statement with the former name, and words of the compiler's message.
    private static let network = [
        ("let a = try NWPathMonitor()", "PathMonitor"),
        ("func a(_ path: NWPath) {}", "NetworkPath"),
        ("func a(_ interface: NWInterface) {}", "NetworkInterface"),
        ("func a(_ endpoint: NWEndpoint) {}", "Endpoint"),
        ("monitor.pathUpdateHandler = { path in print(path.status) }", "onChange(on:_:)"),
        ("monitor.start(queue: .main)", "starts when it is made"),
        ("_ = path.availableInterfaces.first", "interfaces"),
        ("if path.unsatisfiedReason == nil { print(path) }", "cause"),
        ("if path.status == .requiresConnection { print(path) }", "satisfied and unsatisfied"),
        ("_ = path.usesInterfaceType(.wiredEthernet)", "wired"),
    ]

    private static let urlSession = [
        ("session.dataTask(with: url).resume()", "dataTask(for:)"),
        ("session.dataTask(with: request).resume()", "dataTask(for:)"),
        ("session.dataTask(with: request) { data, response, error in print(data as Any) }.resume()", "data(for:)"),
        ("session.uploadTask(with: request, from: Data()).resume()", "uploadTask(for:from:)"),
        ("session.uploadTask(with: request, fromFile: url).resume()", "uploadTask(for:from:)"),
        ("session.downloadTask(with: url).resume()", "downloadTask(for:to:)"),
        ("_ = try await session.upload(for: request, from: Data())", "uploadTask(for:from:)"),
        ("_ = try await session.upload(for: request, fromFile: url)", "uploadTask(for:from:)"),
        ("_ = try await session.download(for: request)", "downloadTask(for:to:)"),
        ("_ = try await session.download(from: url)", "downloadTask(for:to:)"),
        ("_ = try await session.bytes(for: request)", "streamTask(for:)"),
        ("func a(_ session: Session) {}", "HTTPSessionManager"),
        ("_ = try SessionManager()", "HTTPSessionManager"),
        ("_ = try AFHTTPSessionManager(baseURL: url)", "HTTPSessionManager"),
        ("_ = try await session.bytes(from: url)", "streamTask(for:)"),
        ("session.getAllTasks { tasks in print(tasks.count) }", "tasks"),
        ("_ = await session.allTasks", "tasks"),
        ("_ = task.taskIdentifier", "id"),
        ("_ = task.originalRequest", "request"),
        ("_ = task.error", "result"),
        ("_ = task.currentRequest", "request"),
        ("_ = task.countOfBytesReceived", "currentProgress.bytesReceived"),
        ("_ = task.countOfBytesSent", "currentProgress.bytesSent"),
        ("_ = task.countOfBytesExpectedToReceive", "currentProgress.expectedToReceive"),
        ("_ = task.countOfBytesExpectedToSend", "currentProgress.expectedToSend"),
        ("_ = task.currentProgress.completedUnitCount", "bytesReceived"),
        ("_ = task.currentProgress.totalUnitCount", "expectedToReceive"),
        ("task.cancel(byProducingResumeData: { data in print(data as Any) })", "resumeData"),
        ("_ = task.state == .completed", "finished"),
        ("request.httpMethod = \"POST\"", "method"),
        ("request.allHTTPHeaderFields = [:]", "headerFields"),
        ("request.httpBody = Data()", "body"),
        ("request.timeoutInterval = 30", "options.requestTimeout"),
        ("request.setValue(\"1\", forHTTPHeaderField: \"X\")", "headerFields"),
        ("request.addValue(\"1\", forHTTPHeaderField: \"X\")", "headerFields"),
        ("_ = request.value(forHTTPHeaderField: \"X\")", "headerFields"),
        ("_ = response.allHeaderFields", "headerFields"),
        ("_ = response.value(forHTTPHeaderField: \"X\")", "headerFields"),
        ("configuration.timeoutIntervalForRequest = 30", "requestTimeout"),
        ("configuration.timeoutIntervalForResource = 30", "resourceTimeout"),
        ("configuration.httpMaximumConnectionsPerHost = 2", "maximumConnectionsPerHost"),
        ("configuration.httpAdditionalHeaders = [:]", "additionalHeaderFields"),
        ("configuration.allowsExpensiveNetworkAccess = false", "allowsExpensiveAccess"),
        ("configuration.allowsConstrainedNetworkAccess = false", "allowsConstrainedAccess"),
        ("configuration.httpCookieStorage = nil", "cookies"),
        ("configuration.urlCache = nil", "no cache"),
        ("configuration.requestCachePolicy = .reloadIgnoringLocalCacheData", "no cache"),
        ("configuration.protocolClasses = []", "scriptedTransport"),
        ("_ = SessionConfiguration.background(withIdentifier: \"a\")", "DurableSession"),
        ("_ = code == .notConnectedToInternet", "notConnected"),
        ("_ = code == .networkConnectionLost", "connectionLost"),
    ]

    @Test func `the compiler names the replacement of each name of Network and of URLSession`() throws {
        let names = Self.network + Self.urlSession
        // One compilation for all names, because it takes longer than its errors.
        let heading = """
            import Foundation
            import HTTPSession; import Reachability
            """
        let parameters = """
            monitor: PathMonitor, path: NetworkPath, session: HTTPSessionManager, url: URL, request: inout TransferRequest, \
            task: TransferTask, response: TransferResponse, configuration: inout SessionConfiguration, code: HTTPSessionError.Code
            """
        let lines = names.enumerated().map { "func use\($0)(\(parameters)) async throws { \($1.0) }" }
        let errors = try ClientCompiler().errors(in: heading + "\n" + lines.joined(separator: "\n"))
        for (number, (statement, words)) in names.enumerated() {
            let error = errors[number + 3]
            #expect(error?.contains("unavailable") == true || error?.contains("renamed") == true, "\(statement)")
            #expect(error?.contains(words) == true, "\(statement): \(error ?? "no error")")
        }
        #expect(errors.count == names.count)
    }

    @Test func `a program with the names that are equal in Network and URLSession compiles`() throws {
        let program = """
            import Foundation; import HTTPSession; import Reachability

            func watch(_ monitor: PathMonitor) async {
                for await path in monitor where path.status == .satisfied {
                    print(path.isExpensive, path.isConstrained, path.supportsDNS, path.supportsIPv4, path.gateways)
                    print(path.usesInterfaceType(.wifi), path.usesInterfaceType(.cellular))
                }
                monitor.cancel()
            }
            func load(_ session: HTTPSessionManager, _ url: URL) async throws -> Data {
                let (data, response) = try await session.data(from: url)
                guard response.statusCode == 200 else { throw HTTPSessionError(.badServerResponse, "\\(response.statusCode)") }
                let task = session.dataTask(for: TransferRequest(url: url), startsImmediately: false)
                task.resume()
                task.suspend()
                task.cancel()
                print(task.state, task.progress)
                session.finishTasksAndInvalidate()
                session.invalidateAndCancel()
                let (again, _) = try await session.data(for: TransferRequest(url: url))
                return data + again
            }
            func load(_ url: URL, to file: URL) async throws {
                let session = try HTTPSessionManager(baseURL: url)
                let body = try await session.dataTask(for: url).data()
                for try await chunk in session.streamTask(for: url).chunks { print(chunk.count, body.count) }
                try await session.downloadTask(for: url, to: file).file()
                try await session.downloadTask(for: url, to: DownloadDestination(file)).file()
            }
            """
        #expect(try ClientCompiler().errors(in: program).isEmpty)
    }

    @Test func `a program with its own types Session and SessionManager compiles`() throws {
        let program = """
            import HTTPSession

            struct Session { var user = "me" }
            struct SessionManager { var session = Session() }
            func name(_ session: Session, _ manager: SessionManager) -> String { session.user + manager.session.user + Session().user }
            """
        #expect(try ClientCompiler().errors(in: program).isEmpty)
    }

    @Test func `a program makes the values that its interceptors, handlers and stubs receive`() throws {
        let program = """
            import Foundation; import HTTPSession; import HTTPSessionTestKit

            func test(_ interceptor: any RequestInterceptor, _ handlers: TransferHandlers, _ request: TransferRequest) async throws {
                let head = ResponseHead(HTTPResponse(status: .found))
                let error = HTTPSessionError(.timedOut, "no answer")
                _ = await interceptor.retry(after: FailedAttempt(request: request, response: head))
                _ = await interceptor.retry(after: FailedAttempt(request: request, error: error, retryCount: 1))
                _ = await handlers.redirect?(TransferHandlers.Redirect(response: head, proposed: request))
                guard let origin = Origin(request.url) else { return }
                let space = AuthenticationChallenge.ProtectionSpace(origin: origin, realm: "private")
                _ = await handlers.challenge?(AuthenticationChallenge(scheme: .basic, protectionSpace: space))
                _ = await handlers.serverTrust?(ServerTrustChallenge(host: "host", certificates: [], policyError: error))
                _ = await handlers.clientCertificate?(ClientCertificateChallenge(host: "host", authorities: ["CN=a"]))
            }
            func answer(_ reply: (ReceivedRequest) -> StubResponse) -> StubResponse {
                var response = reply(ReceivedRequest(target: "/users?page=2", tls: ReceivedRequest.TLSDetails()))
                response.cut = StubResponse.Cut(at: .body(5))
                response.interim = [StubResponse.Interim(103)]
                response.flood = StubResponse.Flood(count: 10, valueBytes: 100)
                return response
            }
            """
        #expect(try ClientCompiler().errors(in: program).isEmpty)
    }
}
