/// The errno numbers on which verdicts and reports depend, as Linux numbers them on all architectures of Swift
/// (include/uapi/asm-generic/errno.h). Pure code therefore needs no C library.
package enum SystemErrorNumber: Int32, CaseIterable {
    case notPermitted = 1
    case inputOutput = 5
    case outOfMemory = 12
    case accessDenied = 13
    case fileExists = 17
    case noDevice = 19
    case invalid = 22
    case tooManyFilesInSystem = 23
    case tooManyFiles = 24
    case fileTooLarge = 27
    case noSpace = 28
    case brokenPipe = 32
    case messageTooLong = 90
    case protocolUnavailable = 92
    case familyNotSupported = 97
    case addressNotAvailable = 99
    case networkDown = 100
    case networkUnreachable = 101
    case connectionAborted = 103
    case connectionReset = 104
    case noBufferSpace = 105
    case timedOut = 110
    case connectionRefused = 111
    case hostDown = 112
    case hostUnreachable = 113
    case quotaExceeded = 122

    /// The name in errno.h.
    var name: String {
        switch self {
        case .notPermitted: "EPERM"
        case .inputOutput: "EIO"
        case .outOfMemory: "ENOMEM"
        case .accessDenied: "EACCES"
        case .fileExists: "EEXIST"
        case .noDevice: "ENODEV"
        case .invalid: "EINVAL"
        case .tooManyFilesInSystem: "ENFILE"
        case .tooManyFiles: "EMFILE"
        case .fileTooLarge: "EFBIG"
        case .noSpace: "ENOSPC"
        case .brokenPipe: "EPIPE"
        case .messageTooLong: "EMSGSIZE"
        case .protocolUnavailable: "ENOPROTOOPT"
        case .familyNotSupported: "EAFNOSUPPORT"
        case .addressNotAvailable: "EADDRNOTAVAIL"
        case .networkDown: "ENETDOWN"
        case .networkUnreachable: "ENETUNREACH"
        case .connectionAborted: "ECONNABORTED"
        case .connectionReset: "ECONNRESET"
        case .noBufferSpace: "ENOBUFS"
        case .timedOut: "ETIMEDOUT"
        case .connectionRefused: "ECONNREFUSED"
        case .hostDown: "EHOSTDOWN"
        case .hostUnreachable: "EHOSTUNREACH"
        case .quotaExceeded: "EDQUOT"
        }
    }

    /// Returns the name of a number, or the digits of a number that this type does not name.
    static func name(of number: Int32) -> String {
        SystemErrorNumber(rawValue: number)?.name ?? "errno \(number)"
    }
}

/// The codes of getaddrinfo(3) on which a verdict depends, as glibc and musl number them.
enum ResolverCode: Int32 {
    case nameNotFound = -2
    case tryAgain = -3
    case failure = -4
    case noData = -5
    case family = -6
    case noAddressForFamily = -9
    case outOfMemory = -10
    case system = -11

    /// The name in netdb.h.
    var name: String {
        switch self {
        case .nameNotFound: "EAI_NONAME"
        case .tryAgain: "EAI_AGAIN"
        case .failure: "EAI_FAIL"
        case .noData: "EAI_NODATA"
        case .family: "EAI_FAMILY"
        case .noAddressForFamily: "EAI_ADDRFAMILY"
        case .outOfMemory: "EAI_MEMORY"
        case .system: "EAI_SYSTEM"
        }
    }
}

extension ProbeResult {
    /// Whether the system has no descriptor or memory left for a socket.
    var isRefusedByLimit: Bool {
        switch SystemErrorNumber(rawValue: errno) {
        case .tooManyFiles, .tooManyFilesInSystem, .outOfMemory, .noBufferSpace: call != ProbeResult.queue
        default: false
        }
    }
}
