import CLinux
import EventLoop
import Foundation
import Glibc
import NetworkLab
import Reachability
import RecordSamples

@testable import Records

/// A pipe whose reading end a thread of the test drains, when the test starts it.
final class OutputPipe: Sendable {
    let writingEnd: Int32
    private let readingEnd: Int32
    private let text = Locked([UInt8]())
    private let finished = DispatchSemaphore(value: 0)

    init() throws {
        netwatch_signal_ignore(SIGPIPE)
        var ends: [Int32] = [-1, -1]
        guard netwatch_pipe(&ends) == 0 else { throw CancellationError() }
        (readingEnd, writingEnd) = (ends[0], ends[1])
    }

    /// Reads everything until the writing end is closed, or `lineCount` lines, and then closes the reading end.
    func read(lineCount: Int = .max) {
        let thread = Thread { [self] in
            var buffer = [UInt8](repeating: 0, count: 65_536)
            var lines = 0
            while lines < lineCount {
                let count = Glibc.read(readingEnd, &buffer, buffer.count)
                guard count > 0 else { break }
                lines += buffer[..<count].count { $0 == UInt8(ascii: "\n") }
                text.withLock { $0.append(contentsOf: buffer[..<count]) }
            }
            close(readingEnd)
            finished.signal()
        }
        thread.start()
    }

    func closeReadingEnd() { close(readingEnd) }

    /// Returns the lines that were read, after the writing end was closed.
    func lines() -> [String] {
        close(writingEnd)
        finished.wait()
        return text.withLock { String(decoding: $0, as: UTF8.self) }.split(separator: "\n").map(String.init)
    }
}

/// A scripted monitor, which sends all its events before the stream waits for the first time.
struct Script {
    var events: [MonitorEvent]

    func start(_ sink: @escaping @Sendable (Record) -> Void) -> RecordStream.Source {
        for event in events { sink(Record(event: event)) }
        return RecordStream.Source(identity: Samples.header.identity) {}
    }
}

extension ScratchDirectory {
    /// Returns the text of a file; empty if it does not exist.
    func text(_ name: String) -> String { (try? String(contentsOfFile: file(name), encoding: .utf8)) ?? "" }
}
