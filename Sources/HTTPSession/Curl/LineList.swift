internal import CCurl

/// A list of lines for libcurl (curl_slist_append(3)), which has to live as long as libcurl reads it.
struct LineList: ~Copyable {
    /// The first of this list's own lines.
    private var own: UnsafeMutablePointer<curl_slist>?
    /// The last of this list's own lines.
    private var last: UnsafeMutablePointer<curl_slist>?
    /// The lines of another list that follow.
    private let shared: UnsafeMutablePointer<curl_slist>?

    /// The list for libcurl; `nil` without lines.
    var raw: UnsafeMutablePointer<curl_slist>? { own ?? shared }

    /// - Parameters:
    ///   - lines: The lines, which are copied.
    ///   - latin1: Lines behind them, each of whose characters is one byte (ISO 8859-1).
    ///   - shared: The lines of another list, which lives longer than this one.
    /// - Throws: ``HTTPSessionError/Code/transferFailed`` without memory.
    init(
        _ lines: [String], latin1: [String] = [], followedBy shared: UnsafeMutablePointer<curl_slist>? = nil
    ) throws(HTTPSessionError) {
        self.shared = shared
        for line in lines { try append(curl_slist_append(nil, line)) }
        for line in latin1 {
            let bytes = line.unicodeScalars.map { CChar(truncatingIfNeeded: $0.value) } + [0]
            try append(curl_slist_append(nil, bytes))
        }
        last?.pointee.next = shared
    }

    private mutating func append(_ item: UnsafeMutablePointer<curl_slist>?) throws(HTTPSessionError) {
        guard let item else {
            curl_slist_free_all(own)
            (own, last) = (nil, nil)
            throw HTTPSessionError(.transferFailed, "curl_slist_append: no memory")
        }
        if let last { last.pointee.next = item } else { own = item }
        last = item
    }

    deinit {
        last?.pointee.next = nil
        curl_slist_free_all(own)
    }
}
