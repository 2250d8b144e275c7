import NIOCore

/// A rendered document. While it exists, its bytes count as unread: ``RenderQueue`` renders no further ones if there are too many.
final class UnreadDocument: Sendable {
    let buffer: ByteBuffer
    private let renders: RenderQueue

    init(_ buffer: ByteBuffer, _ renders: RenderQueue) { (self.buffer, self.renders) = (buffer, renders) }

    deinit { renders.release(buffer.readableBytes) }
}
