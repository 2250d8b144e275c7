import CLinux
import Console
import FoundationEssentials
import Glibc
import HTTPSession
import Reachability

/// The checks of the destinations of `get`, made before the first request.
enum Destination {
    /// Creates the directory that the user named, and checks each destination. A symbolic link is replaced by the file that it
    /// leads to.
    static func prepare(_ plan: inout GetPlan, until deadline: Moment? = nil) throws(Failure) {
        if let directory = plan.directory { try make(directory) }
        for index in plan.items.indices {
            let file = try checked(plan.items[index].file, isNamedByServer: plan.isNamedByServer)
            plan.items[index].file = file
            if !plan.isNamedByServer { plan.items[index].name = String(file.split(separator: "/").last ?? "") }
            if !plan.restarts, !plan.isNamedByServer, let digest = plan.items[index].digest {
                plan.items[index].presentSize = FinishedFile.size(at: file, having: digest) {
                    deadline.map { Moment.now >= $0 } ?? false
                }
            }
            for path in ["\(file).netwatch-part", "\(file).netwatch-part.json"] {
                guard let reason = OwnFile.objection(at: path) else { continue }
                StandardError.note("get: '\(path)' is not used: \(reason)")
                break
            }
        }
    }

    private static func make(_ directory: String) throws(Failure) {
        var path = directory.hasPrefix("/") ? "/" : ""
        for part in directory.split(separator: "/") {
            path += "\(part)/"
            if mkdir(path, 0o777) != 0, errno != EEXIST, errno != EROFS, errno != EACCES { throw failure(directory, errno) }
        }
        var found = stat()
        guard stat(directory, &found) == 0 else { throw failure(directory, errno) }
        guard found.st_mode & S_IFMT == S_IFDIR else { throw failure(directory, ENOTDIR) }
    }

    private static func checked(_ file: String, isNamedByServer: Bool) throws(Failure) -> String {
        var found = stat()
        var path = file
        if !isNamedByServer { try checkLinks(file) }
        if isNamedByServer {
            // Only the partial file is created at this path.
        } else if let resolved = realpath(file, nil) {
            path = String(cString: resolved)
            free(resolved)
        } else if errno != ENOENT || file.hasSuffix("/") {
            throw failure(file, file.hasSuffix("/") ? EISDIR : errno)
        }
        do {
            try DownloadDestination(URL(fileURLWithPath: path, isDirectory: false), existingFile: .replace).check()
        } catch {
            throw failure(file, error.context.systemError.map(errorText) ?? DownloadDestination.noFile)
        }
        let parent = directory(of: path)
        guard stat(parent, &found) == 0 else { throw failure(file, errno) }
        guard found.st_mode & S_IFMT == S_IFDIR else { throw failure(file, ENOTDIR) }
        guard access(parent, W_OK | X_OK) == 0 else { throw failure(file, errno) }
        return path
    }

    /// Throws if the path is a symbolic link that another user may have created to replace some other file. The kernel has this
    /// rule for open(2) (fs.protected_symlinks, man 5 proc), but not for realpath(3). Here it also applies to directories
    /// without the sticky bit.
    private static func checkLinks(_ file: String) throws(Failure) {
        var path = file
        // MAXSYMLINKS: a longer chain fails with ELOOP anyway.
        for _ in 0..<40 {
            var (link, parent) = (stat(), stat())
            guard lstat(path, &link) == 0, link.st_mode & S_IFMT == S_IFLNK, stat(directory(of: path), &parent) == 0 else {
                return
            }
            guard link.st_uid == geteuid() || link.st_uid == parent.st_uid || parent.st_mode & 0o022 == 0 else {
                throw failure(
                    file, "'\(path)' is a symbolic link of user \(link.st_uid); remove it, or name the file that it leads to")
            }
            var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
            let count = readlink(path, &target, target.count)
            guard count > 0 else { return }
            let text = String(decoding: target[..<count], as: UTF8.self)
            path = text.hasPrefix("/") ? text : "\(directory(of: path))/\(text)"
        }
    }

    private static func directory(of path: String) -> String {
        path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    }

    private static func failure(_ path: String, _ number: Int32) -> Failure { failure(path, errorText(number)) }

    private static func failure(_ path: String, _ why: String) -> Failure {
        Failure(ExitCode.cannotCreate, "\(path): cannot create: \(why)")
    }

    /// Returns whether a later run can continue the partial file.
    static func canContinue(_ file: String) -> Bool {
        OwnFile.objection(at: "\(file).netwatch-part") == nil && OwnFile.objection(at: "\(file).netwatch-part.json") == nil
            && access("\(file).netwatch-part", R_OK) == 0 && access("\(file).netwatch-part.json", R_OK) == 0
    }
}
