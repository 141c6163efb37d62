#if Gateway
import NIOCore

/// The number of threads that can run at once.
public enum ProcessorCount {
  public static var value: Int { max(1, System.coreCount) }
}
#endif
