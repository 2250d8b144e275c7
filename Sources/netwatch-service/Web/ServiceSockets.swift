import Console
import Glibc
import Reachability
import Records

/// The listening sockets of the service: the page's address, and a Unix socket for local programs.
struct ServiceSockets {
    private(set) var all: [ListeningSocket]
    /// The address of the page, for people.
    let address: String
    private let created: [ListeningSocket]

    /// The number of ports that are tried after the one that is in use.
    private static let furtherPorts: UInt16 = 100

    /// Opens the sockets. Those of the service manager replace them.
    ///
    /// - Parameters:
    ///   - listen: the address of the page.
    ///   - path: the path of the Unix socket; `nil` for the default.
    ///   - environment: the variables of the program.
    ///   - usesNextPort: whether another port may replace one that is in use.
    /// - Throws: ``Failure`` if the address, or the socket that the configuration names, cannot be opened.
    init(
        _ listen: ListenAddress, socket path: String?, _ environment: [String: String], usesNextPort: Bool
    ) throws(Failure) {
        let inherited = InheritedSockets(environment)
        for descriptor in inherited.unusable {
            StandardError.note("the inherited descriptor \(descriptor) is no listening socket, and is not used")
        }
        var all: [ListeningSocket] = []
        var created: [ListeningSocket] = []
        for descriptor in inherited.internet + inherited.local { all.append(try ListeningSocket(inherited: descriptor)) }
        var address = "\(listen)"
        if inherited.internet.isEmpty {
            let socket = try Self.open(listen, usesNextPort: usesNextPort)
            if let port = socket.endpoint?.port { address = listen.with(port: port).description }
            all.append(socket)
            created.append(socket)
        } else if let endpoint = all.first?.endpoint {
            address = ListenAddress.text(endpoint.address, port: endpoint.port)
        }
        if inherited.local.isEmpty {
            do throws(Failure) {
                if let socket = try path.map(Self.openLocal) ?? Self.openStandard(environment) {
                    all.append(socket)
                    created.append(socket)
                }
            } catch {
                for socket in created { close(socket.descriptor) }
                throw Failure(error.code, "socket \(error.message)")
            }
        }
        (self.all, self.address, self.created) = (all, address, created)
    }

    /// The addresses of the sockets, as `Host` has them. No name server decides about them.
    var hosts: [String] {
        all.compactMap { socket in socket.endpoint.map { ListenAddress.text($0.address, port: $0.port) } }
    }

    /// Removes the files of the Unix sockets that this program created.
    func removeFiles() { for socket in created { socket.removeFile() } }

    private static func open(_ listen: ListenAddress, usesNextPort: Bool) throws(Failure) -> ListeningSocket {
        do throws(Failure) { return try ListeningSocket.tcp(listen) } catch {
            if usesNextPort, listen.port > 0 {
                for port in (1...furtherPorts).compactMap({ UInt16(exactly: UInt32(listen.port) + UInt32($0)) }) {
                    if let socket = try? ListeningSocket.tcp(listen.with(port: port)) { return socket }
                }
            }
            let owner = PortOwner.find(of: listen).map { ", it belongs to \($0)" } ?? ""
            throw Failure(error.code, "\(error.message)\(owner)")
        }
    }

    private static func openLocal(_ path: String) throws(Failure) -> ListeningSocket? {
        try LocalSocket.createDirectory(of: path)
        return try ListeningSocket.unix(path: path, mode: 0o660, group: LocalSocket.group)
    }

    /// Opens the socket at the usual path. The page works without it, so a failure is a note: another service may have it.
    private static func openStandard(_ environment: [String: String]) -> ListeningSocket? {
        guard let path = LocalSocket.path(environment) else { return nil }
        do throws(Failure) { return try openLocal(path) } catch {
            StandardError.note("\(error.message); local programs cannot use the socket; 'socket' or --socket names another one")
            return nil
        }
    }
}

/// The Unix socket of the API.
enum LocalSocket {
    /// Returns the path of the socket that this user's service creates; `nil` if no directory is suitable.
    static func path(_ environment: [String: String], isRoot: Bool = geteuid() == 0) -> String? {
        if let directory = environment["RUNTIME_DIRECTORY"]?.split(separator: ":").first, directory.hasPrefix("/") {
            return "\(directory)/api.sock"
        }
        if isRoot { return ServiceConnection.systemPath }
        guard let directory = environment["XDG_RUNTIME_DIR"], directory.hasPrefix("/") else { return nil }
        return "\(directory)/netwatch/api.sock"
    }

    /// The number of the group; `nil` if it does not exist, or if this user may not set it.
    static var group: UInt32? { geteuid() == 0 ? getgrnam(ServiceConnection.group).map { $0.pointee.gr_gid } : nil }

    /// Creates the directory of a socket, which all users may enter.
    static func createDirectory(of path: String) throws(Failure) {
        let directory = path.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
        guard mkdir(directory, 0o755) == 0 || errno == EEXIST else {
            throw Failure(ExitCode.cannotCreate, "\(directory): \(errorText(errno))")
        }
    }
}
