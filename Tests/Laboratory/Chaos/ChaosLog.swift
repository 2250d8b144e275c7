import EventLoop
import Foundation
import HTTPSession

/// The client's log, which survives a kill. Each event is one line.
///
/// | line | meaning |
/// |---|---|
/// | `life` | a process has started |
/// | `open NAME OFFSET`, `read NAME BYTES` | a response's body begins at the offset; so many of its bytes were read |
/// | `done NAME` | a transfer of the session without a journal has succeeded |
/// | `made NAME ID`, `known NAME ID` | the durable session has the task: newly created, or from an earlier life |
/// | `event NAME ID OUTCOME`, `acknowledged NAME ID` | the handler has received the event; and has acknowledged it |
/// | `missing NAME` | the durable session had the task, and has lost it |
/// | `failed NAME WHY` | the transfer has failed |
final class ChaosLog: Sendable {
    private let path: String
    private let descriptor: Int32

    init(_ path: String) throws {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXError(.EIO) }
    }

    deinit { close(descriptor) }

    /// Writes a line in one write(2), so that a kill cannot truncate it.
    func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = Glibc.write(descriptor, bytes, bytes.count)
    }

    /// Writes a line and syncs it to the disk.
    func writeThrough(_ line: String) {
        write(line)
        fdatasync(descriptor)
    }

    /// Reads the words of all lines.
    func lines() throws -> [[String]] { try ChaosLog.lines(path) }

    static func lines(_ path: String) throws -> [[String]] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
            .map { $0.split(separator: " ").map { String($0) } }
    }
}

/// An event monitor that logs the response bodies of a session and, without a journal, its successful transfers.
struct ChaosEventMonitor: EventMonitor {
    let log: ChaosLog
    /// Whether the session has a journal. Its transfers count as done only by their events.
    let isDurable: Bool
    /// A stream that yields when the session has ended.
    let ended = AsyncStream.makeStream(of: Void.self)

    /// Returns the name of a task, made from its request: a durable task has another number in each process.
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
        case .sessionInvalidated: ended.continuation.yield()
        default: break
        }
    }
}
