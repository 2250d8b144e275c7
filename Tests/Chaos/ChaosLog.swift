import EventLoop
import Foundation
import HTTPSession

/// The client's log, which survives it: a line each.
///
/// | line | says |
/// |---|---|
/// | `life` | a process has begun |
/// | `open NAME OFFSET`, `read NAME BYTES` | a response's body begins there; so much of it has been read |
/// | `done NAME` | a transfer of the session that ends with its process has ended well |
/// | `made NAME ID`, `known NAME ID` | the durable session has the task: from now on, or from a former life |
/// | `event NAME ID OUTCOME`, `acknowledged NAME ID` | its handler has heard of the end; and has said so |
/// | `missing NAME` | the durable session had it, and knows nothing of it |
/// | `failed NAME WHY` | it ended otherwise than it should |
final class ChaosLog: Sendable {
    private let path: String
    private let descriptor: Int32

    init(_ path: String) throws {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXError(.EIO) }
    }

    deinit { close(descriptor) }

    /// In one write, so that no line is cut by a kill.
    func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = Glibc.write(descriptor, bytes, bytes.count)
    }

    /// On the disk when this returns.
    func writeThrough(_ line: String) {
        write(line)
        fdatasync(descriptor)
    }

    /// The words of every line so far.
    func lines() throws -> [[String]] { try ChaosLog.lines(path) }

    static func lines(_ path: String) throws -> [[String]] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
            .map { $0.split(separator: " ").map { String($0) } }
    }
}

/// Writes down what a session does with bodies, and which transfers it has ended where that is the end.
struct ChaosEar: EventMonitor {
    let log: ChaosLog
    /// An end that its journal does not know is none.
    let isDurable: Bool
    /// Says when the session has ended.
    let over = AsyncStream.makeStream(of: Void.self)

    /// By what it asks for: a durable task has another number in each process.
    private func name(_ task: TransferTask) -> String {
        if case .file(let file) = task.request.body { return "u" + file.lastPathComponent }
        return "d" + task.request.url.lastPathComponent
    }

    func handle(_ event: SessionEvent) {
        switch event {
        case .receivedResponse(let task, let head) where head.statusCode == 200 && task.kind == .download:
            log.write("open \(name(task)) 0")
        case .downloadContinued(let task, let offset, _): log.write("open \(name(task)) \(offset)")
        case .transactionFinished(let task, let transaction) where task.kind == .download:
            log.write("read \(name(task)) \(transaction.countOfResponseBodyBytesReceived)")
        case .taskCompleted(let task, .success(let response)) where !isDurable && (200...299).contains(response.statusCode):
            log.write("done \(name(task))")
        case .sessionInvalidated: over.continuation.yield()
        default: break
        }
    }
}
