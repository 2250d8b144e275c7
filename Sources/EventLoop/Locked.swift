public import Glibc

// @unchecked: the value is touched only while the mutex is held, which the compiler cannot see.

/// A value that only one thread at a time may use.
///
/// The standard library's `Mutex` hands a contended lock over inside the kernel (FUTEX_LOCK_PI), where ThreadSanitizer cannot see
/// it: the suite then reported races between critical sections of the same lock. It knows pthread_mutex_t.
///
/// Copies of it are the same lock, with the same value.
public struct Locked<Value: Sendable>: @unchecked Sendable {
    /// Mutex and value in one piece of memory, whose address stays: pthread_mutex_init(3) allows no copies. Accesses through it are not
    /// checked for exclusivity, which the lock gives.
    @usableFromInline
    final class Storage: ManagedBuffer<pthread_mutex_t, Value> {
        deinit {
            withUnsafeMutablePointers { mutex, value in
                pthread_mutex_destroy(mutex)
                value.deinitialize(count: 1)
            }
        }
    }

    @usableFromInline let storage: ManagedBuffer<pthread_mutex_t, Value>

    /// A lock with its first value.
    @inlinable
    public init(_ value: Value) {
        storage = Storage.create(minimumCapacity: 1) { _ in pthread_mutex_t() }
        storage.withUnsafeMutablePointers { mutex, place in
            pthread_mutex_init(mutex, nil)
            place.initialize(to: value)
        }
    }

    // Inlinable, because through a generic value's witnesses a short critical section takes a thousand instructions. And public, because
    // Swift 6.2 leaves what is `package` uninlined in other modules; this one is in no product.

    /// Runs `body` with the value, alone. It must not come back for the same lock, do I/O or call a user's code.
    @inlinable
    public func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
        try storage.withUnsafeMutablePointers { (mutex, value) throws(Failure) -> Result in
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            return try body(&value.pointee)
        }
    }
}
