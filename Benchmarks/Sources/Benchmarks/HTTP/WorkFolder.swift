import Foundation
import Glibc
import Hosts

/// A directory below /tmp. A shell that waits for the end of this process removes it, however the process ends.
final class WorkFolder: Sendable {
    let path: String
    /// The writing end of the shell's standard input. The kernel closes it at the process's end.
    private let lifeline: Int32

    init() throws {
        var template = Array("/tmp/netwatch-benchmark-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw BenchmarkError("/tmp: errno \(errno)") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        var pipe: [Int32] = [-1, -1]
        guard Glibc.pipe(&pipe) == 0 else { throw BenchmarkError("pipe: errno \(errno)") }
        for end in pipe { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(pipe[0]) }
        lifeline = pipe[1]
        // A signal from the terminal also reaches the shell, which ignores it.
        _ = try Child(["sh", "-c", "trap '' HUP INT TERM; read line; rm -rf \"$0\"", path], input: pipe[0], outlivesParent: true)
    }

    deinit {
        close(lifeline)
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }
}
