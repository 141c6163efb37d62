#if Gateway
import NIOCore

/// How many threads can run at once.
enum ProcessorCount {
  static var value: Int { max(1, System.coreCount) }
}
#endif
