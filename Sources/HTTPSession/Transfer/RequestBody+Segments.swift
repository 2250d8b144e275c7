internal import CLinux
internal import FoundationEssentials
internal import Glibc

extension RequestBody {
    /// The segments of the body. The sizes of files are read now.
    func segments() throws(HTTPSessionError) -> [BodySegment] {
        switch self {
        case .none: return []
        case .data(let data): return [.data(data)]
        case .file(let url):
            guard url.isFileURL else { throw HTTPSessionError(.cannotReadFile, "the URL of the body is not a file URL") }
            var found = stat()
            guard stat(url.path, &found) == 0 else { throw FileFailure.reading(url.path, errno) }
            guard found.st_mode & S_IFMT == S_IFREG else { throw FileFailure.reading(url.path, EINVAL) }
            guard access(url.path, R_OK) == 0 else { throw FileFailure.reading(url.path, errno) }
            if found.st_size == 0, FileContent.hasBytes(url.path) {
                throw HTTPSessionError(.cannotReadFile, "cannot send '\(url.path)': \(FileContent.reason)")
            }
            return [.file(path: url.path, length: Int64(found.st_size))]
        case .multipart(let form):
            let segments = form.segments()
            guard segments.totalLength != .max else {
                throw HTTPSessionError(.invalidRequest, "the form's parts have a total length of 8 EiB or more")
            }
            return segments
        case .stream(let length, let make):
            guard length ?? 0 >= 0 else { throw HTTPSessionError(.invalidRequest, "the body's length is negative") }
            return [.stream(length: length, make: make)]
        }
    }
}
