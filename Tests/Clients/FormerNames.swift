// Names of Network and URLSession that a program uses from memory. The compiler refuses each line with the message that its comment names:
// the replacement.
import Foundation
import HTTPSession
import Reachability

func useNetwork(_ monitor: PathMonitor, _ path: NetworkPath) throws {
    _ = try NWPathMonitor()  // error: PathMonitor
    func a(_ path: NWPath) {}  // error: NetworkPath
    func a(_ interface: NWInterface) {}  // error: NetworkInterface
    func a(_ endpoint: NWEndpoint) {}  // error: Endpoint
    monitor.pathUpdateHandler = { path in print(path.status) }  // error: onChange(on:_:)
    monitor.start(queue: .main)  // error: starts when it is made
    _ = path.availableInterfaces.first  // error: interfaces
    if path.unsatisfiedReason == nil { print(path) }  // error: cause
    if path.status == .requiresConnection { print(path) }  // error: satisfied and unsatisfied
    _ = path.usesInterfaceType(.wiredEthernet)  // error: wired
}

func useURLSession(
    _ session: HTTPSessionManager, _ url: URL, _ request: inout TransferRequest, _ task: TransferTask,
    _ response: TransferResponse, _ configuration: inout SessionConfiguration, _ code: HTTPSessionError.Code
) async throws {
    session.dataTask(with: url).resume()  // error: dataTask(for:)
    session.dataTask(with: request).resume()  // error: dataTask(for:)
    session.dataTask(with: request) { data, response, error in print(data as Any) }.resume()  // error: data(for:)
    _ = try await session.data(from: url)  // error: get(_:)
    session.finishTasksAndInvalidate()  // error: cancel(afterTasks:)
    session.invalidateAndCancel()  // error: cancel()
    session.uploadTask(with: request, from: Data()).resume()  // error: uploadTask(for:from:)
    session.uploadTask(with: request, fromFile: url).resume()  // error: uploadTask(for:from:)
    session.downloadTask(with: url).resume()  // error: downloadTask(for:to:)
    _ = try await session.upload(for: request, from: Data())  // error: uploadTask(for:from:)
    _ = try await session.upload(for: request, fromFile: url)  // error: uploadTask(for:from:)
    _ = try await session.download(for: request)  // error: downloadTask(for:to:)
    _ = try await session.download(from: url)  // error: downloadTask(for:to:)
    _ = try await session.bytes(for: request)  // error: streamTask(for:)
    func a(_ session: Session) {}  // error: HTTPSessionManager
    _ = try SessionManager()  // error: HTTPSessionManager
    _ = try AFHTTPSessionManager(baseURL: url)  // error: HTTPSessionManager
    _ = try await session.bytes(from: url)  // error: streamTask(for:)
    session.getAllTasks { tasks in print(tasks.count) }  // error: tasks
    _ = await session.allTasks  // error: tasks
    _ = task.taskIdentifier  // error: id
    _ = task.originalRequest  // error: request
    _ = task.error  // error: result
    _ = task.currentRequest  // error: request
    _ = task.countOfBytesReceived  // error: currentProgress.bytesReceived
    _ = task.countOfBytesSent  // error: currentProgress.bytesSent
    _ = task.countOfBytesExpectedToReceive  // error: currentProgress.expectedToReceive
    _ = task.countOfBytesExpectedToSend  // error: currentProgress.expectedToSend
    _ = task.currentProgress.completedUnitCount  // error: bytesReceived
    _ = task.currentProgress.totalUnitCount  // error: expectedToReceive
    task.cancel(byProducingResumeData: { data in print(data as Any) })  // error: resumeData
    _ = task.state == .completed  // error: finished
    request.httpMethod = "POST"  // error: method
    request.allHTTPHeaderFields = [:]  // error: headerFields
    request.httpBody = Data()  // error: body
    request.timeoutInterval = 30  // error: options.requestTimeout
    request.setValue("1", forHTTPHeaderField: "X")  // error: headerFields
    request.addValue("1", forHTTPHeaderField: "X")  // error: headerFields
    _ = request.value(forHTTPHeaderField: "X")  // error: headerFields
    _ = response.allHeaderFields  // error: headerFields
    _ = response.value(forHTTPHeaderField: "X")  // error: headerFields
    configuration.timeoutIntervalForRequest = 30  // error: requestTimeout
    configuration.timeoutIntervalForResource = 30  // error: resourceTimeout
    configuration.httpMaximumConnectionsPerHost = 2  // error: maximumConnectionsPerHost
    configuration.httpAdditionalHeaders = [:]  // error: additionalHeaderFields
    configuration.allowsExpensiveNetworkAccess = false  // error: allowsExpensiveAccess
    configuration.allowsConstrainedNetworkAccess = false  // error: allowsConstrainedAccess
    configuration.httpCookieStorage = nil  // error: cookies
    configuration.urlCache = nil  // error: no cache
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData  // error: no cache
    configuration.protocolClasses = []  // error: scriptedTransport
    _ = SessionConfiguration.background(withIdentifier: "a")  // error: DurableSession
    _ = code == .notConnectedToInternet  // error: notConnected
    _ = code == .networkConnectionLost  // error: connectionLost
}
