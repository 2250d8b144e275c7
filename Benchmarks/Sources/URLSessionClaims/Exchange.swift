import Foundation
import FoundationNetworking
import Synchronization

/// One task of a separate session, observed to its end.
struct Exchange {
    var data = Data()
    var response: HTTPURLResponse?
    var error: (any Error)?
    /// False if the task did not end within the limit.
    var isOver = false
    var duration = Duration.zero
    var observer: Observer

    var errorText: String {
        guard let error else { return "no error" }
        return "\((error as? URLError).map { "URLError \($0.code.rawValue)" } ?? "\(type(of: error))")"
    }

    /// Runs a data task with a delegate, which receives challenges and metrics.
    static func data(
        _ request: URLRequest, configuration: URLSessionConfiguration = .ephemeral, observer: Observer = Observer(),
        within seconds: Double = 20
    ) -> Exchange {
        let session = URLSession(configuration: configuration, delegate: observer, delegateQueue: nil)
        return run(session.dataTask(with: request), observer, seconds)
    }

    static func download(
        _ request: URLRequest, configuration: URLSessionConfiguration = .ephemeral, observer: Observer = Observer(),
        within seconds: Double = 20
    ) -> Exchange {
        let session = URLSession(configuration: configuration, delegate: observer, delegateQueue: nil)
        return run(session.downloadTask(with: request), observer, seconds)
    }

    private static func run(_ task: URLSessionTask, _ observer: Observer, _ seconds: Double) -> Exchange {
        let start = ContinuousClock.now
        task.resume()
        let isOver = observer.end.wait(timeout: .now() + seconds) == .success
        let seen = observer.seen
        return Exchange(
            data: seen.data, response: task.response as? HTTPURLResponse, error: seen.error, isOver: isOver,
            duration: start.duration(to: .now), observer: observer)
    }
}

/// A delegate that records its calls.
final class Observer: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    struct Seen: Sendable {
        var data = Data()
        var error: (any Error)?
        var hasMetrics = false
        var sessionChallenges: [String] = []
        var taskChallenges: [String] = []
        var willCacheWasCalled = false
        var downloaded: Int?
    }

    let end = DispatchSemaphore(value: 0)
    private let record = Mutex(Seen())
    private let disposition: URLSession.ResponseDisposition
    private let credential: (user: String, password: String)?

    init(
        disposition: URLSession.ResponseDisposition = .allow, credential: (user: String, password: String)? = nil
    ) {
        self.disposition = disposition
        self.credential = credential
    }

    var seen: Seen { record.withLock { $0 } }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        completionHandler(disposition)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        record.withLock { $0.data += data }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
        record.withLock { $0.willCacheWasCalled = true }
        completionHandler(proposedResponse)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let size = (try? Data(contentsOf: location))?.count
        record.withLock { $0.downloaded = size }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        record.withLock { $0.error = error }
        end.signal()
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        record.withLock { $0.hasMetrics = true }
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        record.withLock { $0.sessionChallenges.append(challenge.protectionSpace.authenticationMethod) }
        completionHandler(.performDefaultHandling, nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        record.withLock { $0.taskChallenges.append(challenge.protectionSpace.authenticationMethod) }
        guard let credential, challenge.previousFailureCount == 0 else { return completionHandler(.performDefaultHandling, nil) }
        completionHandler(
            .useCredential, URLCredential(user: credential.user, password: credential.password, persistence: .none))
    }
}
