import { render } from "@react-email/components";
import { Postroad, PostroadError } from "postroad";

import { type Order, Receipt } from "../../../emails/receipt";

export async function POST(request: Request): Promise<Response> {
  const { to, order } = (await request.json()) as { to: string; order: Order };
  // Made here, not at the top: a build has no environment.
  const postroad = new Postroad({ baseUrl: process.env.POSTROAD_URL ?? "", token: process.env.POSTROAD_API_KEY ?? "" });
  const receipt = <Receipt order={order} />;
  try {
    const accepted = await postroad.send(
      {
        from: process.env.MAIL_FROM ?? "",
        to,
        subject: `Your receipt for order ${order.number}`,
        html: await render(receipt),
        text: await render(receipt, { plainText: true }),
        tags: ["receipt"],
        metadata: { order: order.number },
      },
      // A form that is submitted twice sends one receipt.
      { idempotencyKey: `order-${order.number}-receipt` },
    );
    return Response.json({ id: accepted.id }, { status: 202 });
  } catch (error) {
    if (!(error instanceof PostroadError)) throw error;
    console.error(error);
    return Response.json({ error: "The receipt could not be sent." }, { status: 502 });
  }
}
