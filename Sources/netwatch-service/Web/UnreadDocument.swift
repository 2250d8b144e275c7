import NIOCore

/// A rendered document. While it exists, its bytes count as unread: ``RenderQueue`` renders no further ones if there are too many.
final class UnreadDocument: Sendable {
    let buffer: ByteBuffer
    private let client: RenderClient
    private let renders: RenderQueue

    init(_ buffer: ByteBuffer, for client: RenderClient, _ renders: RenderQueue) {
        (self.buffer, self.client, self.renders) = (buffer, client, renders)
        client.addUnread(buffer.readableBytes)
    }

    deinit {
        client.addUnread(-buffer.readableBytes)
        renders.release(buffer.readableBytes)
    }
}
