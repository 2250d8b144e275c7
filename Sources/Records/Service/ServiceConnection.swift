package import Console
import EventLoop
import FoundationEssentials
import Glibc
import Reachability
import Wire

/// A connection to the Unix socket of a running service.
package final class ServiceConnection {
    /// The socket of the system's service.
    package static let systemPath = "/run/netwatch/api.sock"
    /// The group whose members may use it.
    package static let group = "netwatch"

    /// The limits of a document. A stream has neither: it is silent between two records, and has no end.
    package struct DocumentLimits: Hashable, Sendable {
        /// The maximum time without a byte.
        package var silence = Duration.seconds(30)
        /// The maximum number of bytes.
        package var size = 256 << 20

        package init() {}
    }

    package let descriptor: Int32
    private let path: String

    /// Connects to the service.
    ///
    /// - Parameters:
    ///   - path: the socket; `nil` for that of the system, or else of the user.
    ///   - environment: the variables of the program.
    /// - Throws: ``Failure`` with code 69 if no service listens, and with 77 if the user may not use its socket.
    package init(_ path: String?, _ environment: [String: String]) throws(Failure) {
        let candidates = path.map { [$0] } ?? Self.candidates(environment)
        var failure = Failure(ExitCode.unavailable, "no service is running")
        for candidate in candidates {
            do throws(Failure) {
                (descriptor, self.path) = (try Self.connect(candidate), candidate)
                return
            } catch {
                // A socket without permission is the answer; a missing one is not, if there is another.
                if failure.code != ExitCode.notPermitted { failure = error }
            }
        }
        throw failure
    }

    deinit { close(descriptor) }

    /// Returns the sockets at which a service may listen: the system's, and the user's.
    package static func candidates(_ environment: [String: String]) -> [String] {
        let user = environment["XDG_RUNTIME_DIR"].flatMap { $0.hasPrefix("/") ? "\($0)/netwatch/api.sock" : nil }
        return [systemPath] + [user].compactMap { $0 }
    }

    private static func connect(_ path: String) throws(Failure) -> Int32 {
        guard let address = SocketAddress(unixPath: path) else {
            throw Failure(ExitCode.noInput, "--connect \(path): the path of a socket has 1 to \(SocketAddress.longestPath) bytes")
        }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(systemCall: "socket", errno) }
        guard address.connect(descriptor) != 0 else { return descriptor }
        let number = errno
        close(descriptor)
        switch number {
        case EACCES, EPERM:
            throw Failure(
                ExitCode.notPermitted,
                "\(path): not permitted; a member of the group '\(group)' may use it: usermod -aG \(group) USER")
        case ENOENT, ECONNREFUSED, ENOTDIR:
            throw Failure(ExitCode.unavailable, "\(path): no service is running; start it with 'netwatch serve'")
        default: throw Failure(ExitCode.unavailable, "\(path): \(errorText(number))")
        }
    }

    /// Sends a request for a path with its query.
    package func request(_ target: String) throws(Failure) {
        let text = "GET \(target) HTTP/1.1\r\nHost: netwatch\r\nConnection: close\r\n\r\n"
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw Failure(ExitCode.unavailable, "\(path): \(errorText(errno))") }
            rest = rest.dropFirst(count)
        }
    }

    /// Receives bytes; waits for them. Empty if the service has closed the connection.
    package func receive() throws(Failure) -> [UInt8] { try receive(within: nil) }

    /// Limits the time in which a call receives nothing (SO_RCVTIMEO, socket(7)).
    private func setReceiveTimeout(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        var time = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Receives bytes. - Parameter limit: the timeout of the socket; `nil` without one.
    private func receive(within limit: Duration?) throws(Failure) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count >= 0 { return Array(buffer.prefix(count)) }
            if let limit, errno == EAGAIN {
                throw Failure(ExitCode.unavailable, "\(path): the service has sent nothing for \(TimeSpan.exact(limit))")
            }
            guard errno == EINTR else { throw Failure(ExitCode.unavailable, "\(path): \(errorText(errno))") }
        }
    }

    /// Returns the complete body of a response with the status 200.
    ///
    /// - Throws: ``Failure`` with code 66 for 404, with 64 for 400, with 74 for a document that is incomplete or too large, else with 69.
    package func document(_ target: String, limits: DocumentLimits = .init()) throws(Failure) -> [UInt8] {
        setReceiveTimeout(limits.silence)
        try request(target)
        var reader = ServiceResponse()
        var body: [UInt8] = []
        while !reader.isComplete {
            let bytes = try receive(within: limits.silence)
            guard !bytes.isEmpty else { break }
            do throws(HTTPResponseReader.Failure) { body += try reader.append(bytes) } catch { throw malformed }
            guard body.count <= limits.size else {
                throw Failure(ExitCode.inputOutput, "\(path): the answer is larger than \(limits.size >> 20) MiB")
            }
        }
        guard let status = reader.status else { throw malformed }
        guard status == 200 else { throw failure(status, body) }
        guard reader.isCompleteAtEnd() else {
            throw Failure(ExitCode.inputOutput, "\(path): the service has closed the connection before the end of its answer")
        }
        return body
    }

    /// The document of an error.
    private struct Problem: Decodable { var detail: String }

    /// Returns the failure of a response that is no success: the detail of its document, or its status.
    package func failure(_ status: Int, _ body: [UInt8]) -> Failure {
        let code =
            switch status {
            case 400: ExitCode.usage
            case 404: ExitCode.noInput
            default: ExitCode.unavailable
            }
        guard let problem = try? JSONDecoder().decode(Problem.self, from: Data(body)), !problem.detail.isEmpty else {
            return Failure(code, "\(path): the service answers \(status)")
        }
        // A mistake of the user has its subject in the detail; another one is that of the service.
        return Failure(code, code == ExitCode.unavailable ? "\(path): \(problem.detail)" : problem.detail)
    }

    /// The failure for bytes that are no response.
    package var malformed: Failure { Failure(ExitCode.unavailable, "\(path): the answer is not one of netwatch") }
}
