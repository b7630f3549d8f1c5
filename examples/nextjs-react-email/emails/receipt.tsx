import { Body, Container, Head, Heading, Hr, Html, Preview, Section, Text } from "@react-email/components";

export interface Order {
  number: string;
  name: string;
  items: { title: string; price: string }[];
  total: string;
}

const text = { color: "#1f2937", fontSize: "16px", lineHeight: "24px" };

export function Receipt({ order }: { order: Order }) {
  return (
    <Html lang="en">
      <Head />
      <Preview>{`Order ${order.number}: ${order.total}`}</Preview>
      <Body style={{ backgroundColor: "#ffffff", fontFamily: "Helvetica, Arial, sans-serif" }}>
        <Container style={{ padding: "24px" }}>
          <Heading as="h1" style={{ color: "#111827", fontSize: "24px" }}>
            Thank you, {order.name}
          </Heading>
          <Text style={text}>Your order {order.number} is on its way.</Text>
          <Section>
            {order.items.map((item) => (
              <Text key={item.title} style={{ ...text, margin: 0 }}>
                {item.title}: {item.price}
              </Text>
            ))}
          </Section>
          <Hr />
          <Text style={{ ...text, fontWeight: "bold" }}>Total: {order.total}</Text>
        </Container>
      </Body>
    </Html>
  );
}
