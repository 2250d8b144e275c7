internal import Dispatch
internal import EventLoop
internal import Foundation
internal import Logging

/// Brings a session's cookies to their file soon after they have changed. It belongs to the session's thread, and writes on another,
/// one file after the other: a slow disk delays the next one and nothing else.
final class CookieKeeper {
    /// How long changes are collected, in nanoseconds.
    static let delay: Int64 = 500_000_000

    private struct Writing: Sendable {
        var isUnderWay = false
        var hasFailed = false
    }

    private let url: URL
    private let logger: Logger
    private let writer: Worker
    private let writing = Locked(Writing())
    private var written: [CookieLine]
    /// When the file is due; `nil`: it is as it should be.
    private(set) var deadline: Int64?

    /// `lines` are those that the file has.
    init(_ url: URL, lines: [CookieLine], writer: Worker, logger: Logger) {
        self.url = url
        self.writer = writer
        self.logger = logger
        written = lines
    }

    func noteChange(now: Int64) {
        if deadline == nil { deadline = now + CookieKeeper.delay }
    }

    /// Has the file written when that is due, and it would change.
    func save(_ lines: @autoclosure () -> [CookieLine], now: Int64) {
        guard let deadline, deadline <= now else { return }
        guard !writing.withLock({ $0.isUnderWay }) else {
            self.deadline = now + CookieKeeper.delay
            return
        }
        self.deadline = nil
        let lines = lines()
        guard lines != written else { return }
        written = lines
        writing.withLock { $0.isUnderWay = true }
        writer.run { [url, logger, writing] in
            let isWritten = CookieKeeper.write(lines, url, logger)
            writing.withLock { $0 = Writing(isUnderWay: false, hasFailed: !isWritten) }
        }
    }

    /// The session's end: the file is as it should be when this returns, if it can be.
    func finish(_ lines: [CookieLine]) {
        let isDone = DispatchSemaphore(value: 0)
        writer.run { [url, logger, writing, isOther = lines != written] in
            if isOther || writing.withLock({ $0.hasFailed }) { _ = CookieKeeper.write(lines, url, logger) }
            isDone.signal()
        }
        isDone.wait()
    }

    /// A jar that cannot be written is not worth a session's end, but a word.
    private static func write(_ lines: [CookieLine], _ url: URL, _ logger: Logger) -> Bool {
        do throws(HTTPSessionError) {
            try CookieFile.write(lines, to: url)
            return true
        } catch {
            logger.warning("cookies cannot be written", metadata: ["reason": "\(error.reason)"])
            return false
        }
    }
}
