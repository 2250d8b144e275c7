/// A document that is rendered in pieces, so that those of other clients are rendered between them.
protocol PiecewiseDocument: Sendable {
    /// Renders the next piece. - Returns: the document after the last piece; `nil` while pieces remain.
    mutating func renderPiece() -> [UInt8]?
}

extension PiecewiseDocument {
    /// Renders all pieces.
    func rendered() -> [UInt8] {
        var document = self
        while true {
            if let bytes = document.renderPiece() { return bytes }
        }
    }
}

/// A document whose parts are known before it is rendered. Each part is a piece, and so is its end.
struct PartedDocument<Content: Sendable>: PiecewiseDocument {
    typealias Part = @Sendable (inout Content) -> Void

    /// The number of lines, rows or records of a part.
    static var partSize: Int { 50 }

    private var content: Content
    private let parts: [Part]
    private let end: @Sendable (Content) -> [UInt8]
    private var next = 0

    /// Creates a document of parts. `end` returns it after all of them.
    init(_ content: Content, _ parts: [Part], end: @escaping @Sendable (Content) -> [UInt8]) {
        (self.content, self.parts, self.end) = (content, parts, end)
    }

    mutating func renderPiece() -> [UInt8]? {
        guard next < parts.count else { return end(content) }
        parts[next](&content)
        next += 1
        return nil
    }

    /// Returns parts that render the elements of a list, ``partSize`` each.
    static func parts<Element: Sendable>(
        _ elements: [Element], _ render: @escaping @Sendable (ArraySlice<Element>, inout Content) -> Void
    ) -> [Part] {
        stride(from: 0, to: elements.count, by: partSize).map { start in
            { content in render(elements[start..<min(elements.count, start + partSize)], &content) }
        }
    }
}

/// A document that is rendered at once.
struct WholeDocument: PiecewiseDocument {
    let render: @Sendable () -> [UInt8]

    func renderPiece() -> [UInt8]? { render() }
}

/// A document that takes what it shows when its first piece is rendered: those that wait do not keep old boards.
struct DeferredDocument: PiecewiseDocument {
    private let begin: @Sendable () -> any PiecewiseDocument
    private var document: (any PiecewiseDocument)?

    init(_ begin: @escaping @Sendable () -> any PiecewiseDocument) { self.begin = begin }

    mutating func renderPiece() -> [UInt8]? {
        if document == nil { document = begin() }
        return document?.renderPiece()
    }
}
