import CLinux
import Glibc

/// A shell that outlives the test process by a moment and removes what the kernel does not: process groups that still run, names
/// of namespaces, and directories. Its standard input is a pipe whose only writer is the test process, so it notices even a
/// sudden end. It has a session of its own, so that a signal to the test's process group does not kill it.
final class Watchdog: Sendable {
    /// The watchdog of this process, started at first use.
    static let shared = Result { try Watchdog() }

    private let pipe: Descriptor
    /// The shell's own process.
    let processID: Int32

    init() throws {
        let (output, input) = try Descriptor.pipe()
        pipe = input
        let null = try Descriptor(open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null")
        let environment = ["PATH": searchPath]
        processID = try spawn(
            "/bin/sh", ["sh", "-c", script], environment: environment, group: .session,
            descriptors: [output.number, null.number, null.number])
    }

    /// An object to be removed when the test process ends.
    enum Charge {
        case processGroup(Int32)
        case namespace(String)
        case directory(String)

        fileprivate var text: String {
            switch self {
            case .processGroup(let leader): "group:\(leader)"
            case .namespace(let name): "netns:\(name)"
            case .directory(let path): "directory:\(path)"
            }
        }
    }

    func take(_ charge: Charge) throws {
        try send("+ \(charge.text)\n")
    }

    func release(_ charge: Charge) {
        try? send("- \(charge.text)\n")
    }

    private func send(_ line: String) throws {
        // A line is shorter than PIPE_BUF, so lines of several threads do not mix.
        let bytes = Array(line.utf8)
        guard write(pipe.number, bytes, bytes.count) == bytes.count else { throw LabError("watchdog", errno: errno) }
    }
}

private let script = #"""
    trap '' HUP INT TERM
    entries=
    while read -r sign entry; do
        case $sign in
        +) entries="$entries $entry" ;;
        -) kept=
           for one in $entries; do [ "$one" = "$entry" ] || kept="$kept $one"; done
           entries=$kept ;;
        esac
    done
    for entry in $entries; do
        case $entry in
        group:*) kill -s KILL -- "-${entry#group:}" ;;
        netns:*)
            ip netns del "${entry#netns:}"
            # What ip-netns(8) reads for the name, should a test have made it.
            rm -r "/etc/netns/${entry#netns:}" ;;
        directory:*) rm -r "${entry#directory:}" ;;
        esac
    done
    """#
