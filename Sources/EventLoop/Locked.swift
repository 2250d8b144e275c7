public import Glibc

// @unchecked: the value is accessed only while the mutex is held, which the compiler cannot check.

/// A value that is protected by a mutex.
///
/// The standard library's `Mutex` passes a contended lock on inside the kernel (FUTEX_LOCK_PI), where ThreadSanitizer cannot
/// see it. The test suite then reported races between critical sections of the same lock. ThreadSanitizer knows
/// pthread_mutex_t.
///
/// Copies share the mutex and the value.
public struct Locked<Value: Sendable>: @unchecked Sendable {
    /// The mutex and the value in one allocation, whose address does not change: pthread_mutex_init(3) allows no copies.
    /// Accesses are not checked for exclusivity, which the lock guarantees.
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

    /// Creates a lock with its first value.
    @inlinable
    public init(_ value: Value) {
        storage = Storage.create(minimumCapacity: 1) { _ in pthread_mutex_t() }
        storage.withUnsafeMutablePointers { mutex, place in
            pthread_mutex_init(mutex, nil)
            place.initialize(to: value)
        }
    }

    // Inlinable, because a short critical section takes a thousand instructions through a generic value's witnesses. Public,
    // because Swift 6.2 does not inline `package` functions into other modules; this module is in no product.

    /// Runs `body` with the value while the mutex is held. `body` must not take the same lock again, do I/O, or call user code.
    @inlinable
    public func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
        try storage.withUnsafeMutablePointers { (mutex, value) throws(Failure) -> Result in
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            return try body(&value.pointee)
        }
    }
}
