import CLinux
import Foundation
import Glibc

/// The folders in which programs are searched. An ordinary user's PATH lacks those of ip(8) and nft(8).
let searchPath = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin") + ":/usr/sbin:/sbin"

/// The file of the program `name`. A name with a slash is a path.
func locate(_ name: String) throws -> String {
    if name.contains("/") { return name }
    for folder in searchPath.split(separator: ":") where access("\(folder)/\(name)", X_OK) == 0 {
        return "\(folder)/\(name)"
    }
    throw LabError("\(name): not found in \(searchPath)")
}

enum ProcessGroup {
    /// A new group in the test's session, so that the program and its children can be killed together.
    case own
    /// A new session.
    case session
}

/// Starts a program in the calling thread's network namespace. `descriptors` become its 0, 1 and 2, and nil closes one. The
/// program inherits no other descriptor and no blocked or ignored signal.
func spawn(
    _ path: String, _ arguments: [String], environment: [String: String], directory: String? = nil, group: ProcessGroup,
    descriptors: [Int32?]
) throws -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (target, source) in descriptors.enumerated() {
        if let source {
            posix_spawn_file_actions_adddup2(&actions, source, Int32(target))
        } else {
            posix_spawn_file_actions_addclose(&actions, Int32(target))
        }
    }
    netwatch_spawn_closing_from(&actions, 3)
    if let directory { netwatch_spawn_in_directory(&actions, directory) }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    var all = sigset_t()
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    let groupFlag =
        switch group {
        case .own: Int16(POSIX_SPAWN_SETPGROUP)
        case .session: netwatch_POSIX_SPAWN_SETSID
        }
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(&attributes, groupFlag | Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var argumentPointers = arguments.map { strdup($0) } + [nil]
    var environmentPointers = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { (argumentPointers + environmentPointers).forEach { free($0) } }
    var process: Int32 = 0
    let code = posix_spawn(&process, path, &actions, &attributes, &argumentPointers, &environmentPointers)
    guard code == 0 else { throw LabError(path, errno: code) }
    return process
}
